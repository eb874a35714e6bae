# SPDX-License-Identifier: Apache-2.0
"""What the engines are asked with seeds."""

NEW_TOKENS = 100
PARAMETERS = [
    {"temperature": 0.7},
    {"temperature": 1.0, "top_k": 12},
    {"temperature": 1.3, "top_p": 0.9},
    {"temperature": 1.0, "min_p": 0.1},
    {"temperature": 2.0, "top_k": 30, "top_p": 0.95, "min_p": 0.02},
    {"temperature": 0.3},
]
SEEDS = [1, 42, 2**40 + 3]
GREEDY = {"temperature": 0}
DETERMINISTIC = {"enable_deterministic_inference": True}


def requests() -> list[dict]:
    """One set of parameters for each seed, in an order that mixes them; greedy ones between."""
    mixed = [p | {"sampling_seed": seed} for seed in SEEDS for p in PARAMETERS]
    return mixed + [GREEDY, GREEDY]


def answer(engine, prompts, params: list[dict]) -> list[list[int]]:
    """One batch: the i-th parameters with the i-th prompt, going round."""
    outputs = engine.generate(
        input_ids=[prompts[i % len(prompts)] for i in range(len(params))],
        sampling_params=[p | {"max_new_tokens": NEW_TOKENS, "ignore_eos": True} for p in params],
    )
    return [output["output_ids"] for output in outputs]
