# SPDX-License-Identifier: Apache-2.0
"""Turn the prompts into token ids with the model's own tokenizer, in a process of its own.

    python -m gpucheck.tokens MODEL [--trust-remote-code] < TEXTS > IDS

reads {"kind": [[text, is_question], ...]} and prints {"kind": [[id, ...], ...]}. The command
itself imports neither torch nor transformers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from demo.failure import Failure, last_words

_PATIENCE_S = 600


def token_ids(
    model: str, texts: dict[str, list[tuple[str, bool]]], trust_remote_code: bool
) -> dict[str, list[list[int]]]:
    """The ids of each text, by kind.

    Raises:
        Failure: the tokenizer cannot be loaded.
    """
    command = [sys.executable, "-m", "gpucheck.tokens", model]
    command += ["--trust-remote-code"] * trust_remote_code
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "", "TOKENIZERS_PARALLELISM": "false"}
    try:
        done = subprocess.run(
            command,
            input=json.dumps(texts),
            capture_output=True,
            text=True,
            env=environment,
            timeout=_PATIENCE_S,
        )
    except subprocess.TimeoutExpired:
        raise Failure(
            f"tokenizer of {model}: expected it within {_PATIENCE_S} s, found none; "
            "check the network, or pass a local --model-path"
        ) from None
    if done.returncode != 0:
        last = last_words(done)
        raise Failure(
            f"tokenizer of {model}: expected to load it, found: {last}; check --model-path",
        )
    return json.loads(done.stdout)


def main(model: str, trust_remote_code: bool) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model, trust_remote_code=trust_remote_code)

    def ids(text: str, is_question: bool) -> list[int]:
        if is_question and tokenizer.chat_template:
            turn = [{"role": "user", "content": text}]
            text = tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
            # The template has written the special tokens already.
            return tokenizer(text, add_special_tokens=False)["input_ids"]
        return tokenizer(text)["input_ids"]

    texts = json.load(sys.stdin)
    print(json.dumps({kind: [ids(*each) for each in some] for kind, some in texts.items()}))


if __name__ == "__main__":
    main(sys.argv[1], "--trust-remote-code" in sys.argv[2:])
