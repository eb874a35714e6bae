# SPDX-License-Identifier: Apache-2.0
"""Train the byte-level BPE tokenizer on generated text."""

from collections.abc import Iterator
from pathlib import Path

from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers.models import BPE
from transformers import PreTrainedTokenizerFast

from models.recipe import ASSISTANT, EOS, MASK, SPECIAL_TOKENS, USER, Recipe
from models.text import document

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}"
    + ASSISTANT
    + "{{ message['content'] }}"
    + EOS
    + "{% else %}"
    + USER
    + "{{ message['content'] }}"
    "{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}" + ASSISTANT + "{% endif %}"
)


def train_tokenizer(recipe: Recipe, out: Path) -> PreTrainedTokenizerFast:
    """Train, save under ``out`` and return the tokenizer.

    Digits are tokens of their own, so that sums can be learnt from few examples.
    """
    tokenizer = Tokenizer(BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=recipe.vocab_size,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_plain_text(recipe), trainer)
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token=EOS,
        pad_token=EOS,
        mask_token=MASK,
        additional_special_tokens=[USER, ASSISTANT],
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )
    fast.save_pretrained(out)
    return fast


def _plain_text(recipe: Recipe) -> Iterator[str]:
    rng = recipe.rng("tokenizer text")
    for _ in range(recipe.tokenizer_documents):
        _, prompt, completion = document(rng)
        text = prompt + completion
        yield text.replace(USER, "").replace(ASSISTANT, "\n")
