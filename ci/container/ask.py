# SPDX-License-Identifier: Apache-2.0
"""Ask a server on this machine for continuations; standard library only, to run in a container.

    python ask.py PORT PROMPTS      PROMPTS: a JSON list of texts

Prints a JSON list, [token ids, verify steps] for each text: first all of them greedily, then all
sampled at temperature 0.8, the i-th with seed i.
"""

import json
import sys
import urllib.request

NEW_TOKENS = 64


def main() -> None:
    port, texts = int(sys.argv[1]), json.loads(sys.argv[2])
    greedy = [{"temperature": 0, "max_new_tokens": NEW_TOKENS} for _ in texts]
    sampled = [
        {"temperature": 0.8, "max_new_tokens": NEW_TOKENS, "sampling_seed": seed}
        for seed in range(len(texts))
    ]
    body = {"text": texts * 2, "sampling_params": greedy + sampled}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/generate",
        json.dumps(body).encode(),
        {"Content-Type": "application/json"},
    )
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with direct.open(request, timeout=300) as response:
        answers = json.load(response)
    print(json.dumps([[a["output_ids"], a["meta_info"]["spec_verify_ct"]] for a in answers]))


if __name__ == "__main__":
    main()
