# SPDX-License-Identifier: Apache-2.0
"""How many tokens a step the chain and the trees of a drafter emit, without SGLang.

Verification is exact: what it emits is a plain continuation by the target, whatever is drafted.
The draft only decides where each step stops. So the target continues each prompt once, and each
method walks along that text: a step accepts the drafted tokens that agree with it, and one more.
"""

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from models.dflash_reference import DFlashDrafter
from models.draft_tree import best_first_prefixes, chain_accepts, followed_ranks, tree_accepts
from models.progress import Progress
from models.rollouts import continue_prompts

BUDGETS = (7, 15, 31, 63)
METHODS = ("chain", *(f"tree {budget}" for budget in BUDGETS))
# A node of rank r costs r better siblings, so no tree of 63 nodes holds a rank above 62.
CANDIDATES = BUDGETS[-1]


@dataclass(frozen=True)
class Pair:
    """A target, its tokenizer and its drafter."""

    tokenizer: AutoTokenizer
    target: AutoModelForCausalLM
    drafter: DFlashDrafter

    @classmethod
    def load(cls, path: Path) -> "Pair":
        """Load ``path/target`` and ``path/draft`` in fp32."""
        return cls(
            AutoTokenizer.from_pretrained(path / "target"),
            AutoModelForCausalLM.from_pretrained(path / "target", dtype=torch.float32).eval(),
            DFlashDrafter.from_pretrained(path / "draft"),
        )


@dataclass(frozen=True)
class Walks:
    """What was counted along the continuations of ``n`` prompts of ``kinds``.

    ``steps`` is float64 ``[n, methods]``; ``tokens``, ``[n]``, leaves out the one that the prefill
    gives. ``confidence`` is ``[all tokens, 2]``, see :func:`confidence`.
    """

    kinds: list[str]
    steps: torch.Tensor
    tokens: torch.Tensor
    confidence: torch.Tensor


def measure(
    pair: Pair, prompts: list[dict[str, str]], temperature: float, new_tokens: int
) -> Walks:
    """Continue ``prompts`` to eos or ``new_tokens`` tokens, and walk each method along the text.

    A prompt whose continuation ends with its first token has no step and is left out.
    """
    ids = pair.tokenizer([p["prompt"] for p in prompts])["input_ids"]
    texts = continue_all(pair, ids, new_tokens + pair.drafter.block_size, temperature)
    eos = pair.tokenizer.eos_token_id
    kinds, steps, tokens, sure = [], [], [], []
    progress = Progress(f"drafted at temperature {temperature:g}", len(prompts), every=50)
    for number, (prompt, prefix, text) in enumerate(zip(prompts, ids, texts, strict=True), 1):
        first = len(prefix)
        end = first + new_tokens - 1
        if eos in text[first:end]:
            end = text.index(eos, first)
        if end > first:
            kinds.append(prompt["kind"])
            steps.append(count_steps(pair, text, first, end))
            tokens.append(end - first)
            sure.append(confidence(pair, text, first, end))
        progress.step(number)
    return Walks(
        kinds,
        torch.tensor(steps, dtype=torch.float64),
        torch.tensor(tokens, dtype=torch.float64),
        torch.cat(sure),
    )


def continue_all(
    pair: Pair, prompts: list[list[int]], new_tokens: int, temperature: float
) -> list[list[int]]:
    """Each prompt continued by the target, prompts included, in the order given."""
    by_length = defaultdict(list)
    for index, prompt in enumerate(prompts):
        by_length[len(prompt)].append(index)
    texts: list[list[int]] = [[]] * len(prompts)
    progress = Progress(f"continued at temperature {temperature:g}", len(by_length), every=10)
    for number, indices in enumerate(by_length.values(), 1):
        batch = torch.tensor([prompts[i] for i in indices])
        rows = continue_prompts(pair.target, batch, new_tokens, temperature)
        for index, row in zip(indices, rows.tolist(), strict=True):
            texts[index] = row
        progress.step(number)
    return texts


@torch.no_grad()
def draft_log_probs(pair: Pair, text: list[int], anchors: range) -> torch.Tensor:
    """Draft log-probabilities ``[anchors, block - 1, vocab]`` of blocks anchored in ``text``."""
    hidden_states = pair.target(torch.tensor([text]), output_hidden_states=True).hidden_states
    known = torch.tensor([text[anchors.start : anchors.stop]])
    embeds = pair.target.get_input_embeddings()(pair.drafter.block_ids(known))
    features = pair.drafter.target_features(hidden_states)
    hidden = pair.drafter(features, embeds, torch.tensor([list(anchors)]))
    return torch.log_softmax(pair.target.lm_head(hidden[0, :, 1:]), -1)


def count_steps(pair: Pair, text: list[int], first: int, end: int) -> list[int]:
    """Steps that each of ``METHODS`` takes from the token at ``first`` to the one at ``end``.

    ``text`` must go on for a draft block beyond ``end``; the last step may reach beyond it too.
    """
    anchors = range(first, end)
    top = draft_log_probs(pair, text, anchors).topk(CANDIDATES, -1)
    log_probs, candidates = top.values.tolist(), top.indices.tolist()
    accepts = []
    for row, anchor in enumerate(anchors):
        drafted_text = text[anchor + 1 : anchor + pair.drafter.block_size]
        ranks = followed_ranks(candidates[row], drafted_text)
        prefixes = best_first_prefixes(log_probs[row], BUDGETS[-1])
        by_budget = tree_accepts(prefixes, ranks, BUDGETS)
        accepts.append((chain_accepts(ranks), *by_budget.values()))
    counts = []
    for column in range(len(METHODS)):
        row, steps = 0, 0
        while row < len(accepts):
            row += accepts[row][column] + 1
            steps += 1
        counts.append(steps)
    return counts


@torch.no_grad()
def confidence(pair: Pair, text: list[int], first: int, end: int) -> torch.Tensor:
    """How sure the target is of each token of ``text[first : end + 1]``.

    Returns:
        ``[tokens, 2]``: the largest probability, and the margin between the two largest logits.
    """
    logits = pair.target(torch.tensor([text])).logits[0, first - 1 : end]
    best, second = logits.topk(2, -1).values.unbind(-1)
    return torch.stack([torch.softmax(logits, -1).amax(-1), best - second], -1)
