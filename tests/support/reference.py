# SPDX-License-Identifier: Apache-2.0
"""The target in transformers and the drafter in plain PyTorch: what the engine must equal."""

from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from models.dflash_reference import DFlashDrafter

# A verify forward of many rows and a decode of one differ by about 6e-6 in a log-probability.
# Below this difference between the two best tokens, two right implementations may disagree.
NEAR_TIE = 1e-4


class Reference:
    """Greedy continuations and hidden states, one prompt at a time, so without padding."""

    def __init__(self, target: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(target)
        self.model = AutoModelForCausalLM.from_pretrained(target, dtype=torch.float32).eval()
        # Continue through end-of-text: tests that stop there cut the continuation themselves.
        self.model.generation_config.eos_token_id = None
        self.model64 = AutoModelForCausalLM.from_pretrained(target, dtype=torch.float64).eval()

    @torch.no_grad()
    def greedy(self, prompt: list[int], new_tokens: int) -> list[int]:
        """`generate` without sampling: the `new_tokens` tokens after `prompt`."""
        ids = torch.tensor([prompt])
        output = self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=new_tokens,
            do_sample=False,
            pad_token_id=0,
        )
        return output[0, len(prompt) :].tolist()

    @torch.no_grad()
    def margins(self, prompt: list[int], tokens: list[int]) -> torch.Tensor:
        """In float64, how far each of `tokens` is above every other token: float64 [n].

        A log-probability difference; negative where another token is better.
        """
        ids = torch.tensor([prompt + tokens[:-1]])
        logits = self.model64(ids).logits[0, len(prompt) - 1 :]
        chosen = torch.tensor(tokens)[:, None]
        others = logits.scatter(1, chosen, float("-inf"))
        return logits.gather(1, chosen)[:, 0] - others.amax(1)

    @torch.no_grad()
    def features(self, drafter: DFlashDrafter, ids: list[int]) -> torch.Tensor:
        """What `drafter` reads of the target at each of `ids`: [n, layers * hidden]."""
        output = self.model(torch.tensor([ids]), output_hidden_states=True)
        return drafter.target_features(output.hidden_states)[0]

    @torch.no_grad()
    def chain_accepts(
        self, drafter: DFlashDrafter, prompt: list[int], tokens: list[int]
    ) -> list[int]:
        """Accepted draft tokens of each DFLASH step that emits `tokens` after `prompt`.

        The first token comes from the prefill. A step drafts the most probable token of each
        position, accepts as many as agree with the text and adds the token after them; the
        last step is cut where the text ends.
        """
        text = prompt + tokens
        features = self.features(drafter, text)[None]
        position, last = len(prompt), len(text) - 1
        accepts = []
        while position < last:
            known = torch.tensor([[text[position]]])
            embeds = self.model.get_input_embeddings()(drafter.block_ids(known))
            hidden = drafter(features, embeds, torch.tensor([[position]]))[0, 0, 1:]
            drafted = self.model.lm_head(hidden).argmax(-1).tolist()
            agreed = common_length(drafted, text[position + 1 :])
            committed = min(agreed + 1, last - position)
            accepts.append(committed - 1)
            position += committed
        return accepts

    def assert_same(self, actual: list[int], prompt: list[int], expected: list[int]) -> None:
        """The tokens are identical; if not, say where, and whether it was a near tie."""
        if actual == expected:
            return
        at = common_length(actual, expected)
        found = f"{len(actual)} tokens for {len(expected)}, the first {at} equal"
        if at == min(len(actual), len(expected)):
            raise AssertionError(f"one answer is a prefix of the other: {found}")
        margin = self.margins(prompt, expected[: at + 1])[-1].item()
        verdict = "a NEAR TIE" if abs(margin) < NEAR_TIE else "no near tie: a real difference"
        raise AssertionError(
            f"{found}; then {actual[at]} instead of {expected[at]}, which is better by "
            f"{margin:.2e} in float64 ({verdict})"
        )


def common_length(left: list[int], right: list[int]) -> int:
    """How many leading entries are equal."""
    pairs = enumerate(zip(left, right, strict=False))
    return next((i for i, (a, b) in pairs if a != b), min(len(left), len(right)))


def choose_prompts(
    reference: Reference, candidates: list[list[int]], count: int, new_tokens: int
) -> list[tuple[list[int], list[int]]]:
    """The first `count` candidates whose greedy continuation has no near tie, each with it."""
    chosen = []
    for prompt in candidates:
        tokens = reference.greedy(prompt, new_tokens)
        if reference.margins(prompt, tokens).min() >= NEAR_TIE:
            chosen.append((prompt, tokens))
        if len(chosen) == count:
            return chosen
    raise AssertionError(
        f"expected {count} of {len(candidates)} prompts without a near tie, found {len(chosen)}: "
        "add held-out prompts"
    )
