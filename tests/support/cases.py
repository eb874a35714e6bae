# SPDX-License-Identifier: Apache-2.0
"""What the engines are asked."""

# Prompts of a batch, and tokens that each is continued by.
BATCH = 8
NEW_TOKENS = 200


def stopping_cases(
    chosen: list[tuple[list[int], list[int]]], tokenizer
) -> dict[str, tuple[list[int], dict]]:
    """Requests that end early: name to (prompt, sampling parameters).

    Each ends for another reason or at another place of a step.

    Args:
        chosen: prompts with their greedy continuations, at least 4.
        tokenizer: to find stop strings in the continuations.
    """
    cases = {}
    for i, (prompt, tokens) in enumerate(chosen):
        cases[f"end of text {i}"] = prompt, {"max_new_tokens": 150}
        # Stop at different places of a step's tokens: the places differ from prompt to prompt.
        stop_token = {"stop_token_ids": [tokens[20 + i]], "max_new_tokens": 150}
        cases[f"stop token {i}"] = prompt, stop_token
        written = tokenizer.decode(tokens[: 30 + i])
        stop_string = {"stop": [written[-5:]], "ignore_eos": True, "max_new_tokens": 150}
        cases[f"stop string {i}"] = prompt, stop_string
    prompt = chosen[0][0]
    for n in (1, 2, 3):
        cases[f"{n} tokens"] = prompt, {"ignore_eos": True, "max_new_tokens": n}
    cases["stop string kept"] = prompt, cases["stop string 0"][1] | {"no_stop_trim": True}
    return cases


def ending(output: dict) -> dict:
    """What must not depend on speculation in an answer."""
    meta = output["meta_info"]
    return {
        "output_ids": output["output_ids"],
        "text": output["text"],
        "finish_reason": meta["finish_reason"],
        "completion_tokens": meta["completion_tokens"],
    }
