# SPDX-License-Identifier: Apache-2.0
"""What the demo asks a server for, over plain HTTP to this machine (no proxy is used)."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .checkout import logs
from .failure import Failure
from .ports import LOOPBACK

_ANSWER_TIMEOUT_S = 300.0
_HEALTH_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Answer:
    """One answer, and the verify steps that it took (0 without speculation)."""

    token_ids: tuple[int, ...]
    verify_steps: int


@contextmanager
def request(
    port: int,
    method: str,
    path: str,
    body: Any = None,
    timeout_s: float = _ANSWER_TIMEOUT_S,
    log: Path | None = None,
) -> Iterator[http.client.HTTPResponse]:
    """A response with status 200.

    Args:
        timeout_s: how long to wait for each part of the answer.
        log: where a failure sends the reader, if not to the demo's logs.

    Raises:
        Failure: there was no answer, or another status.
    """
    see = f"see the logs in {logs()}" if log is None else f"see {log}"
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=timeout_s)
    headers = {"Content-Type": "application/json"}
    try:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        response = connection.getresponse()
        if response.status != 200:
            found = " ".join(response.read(400).decode("utf-8", "replace").split())
            raise Failure(f"{path}: expected status 200, found {response.status}: {found}; {see}")
        yield response
    except (OSError, http.client.HTTPException) as error:
        raise Failure(
            f"{path}: expected an answer from the server, found {error!r}; {see}"
        ) from error
    finally:
        connection.close()


def is_healthy(port: int) -> bool:
    """Whether a server answers its health check, which decodes one token."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=_HEALTH_TIMEOUT_S)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def server_version(port: int) -> str:
    """The SGLang version that a server reports."""
    with request(port, "GET", "/server_info") as response:
        return str(json.load(response).get("version", "of an unknown version"))


def chat_body(question: str, max_tokens: int) -> dict[str, Any]:
    """A greedy request for /v1/chat/completions."""
    return {
        "model": "tiny",
        "messages": [{"role": "user", "content": question}],
        "temperature": 0,
        "max_tokens": max_tokens,
    }


def stream_chat(port: int, question: str, max_tokens: int) -> Iterator[str]:
    """The pieces of an answer, as the server sends them (OpenAI API, server-sent events)."""
    body = {**chat_body(question, max_tokens), "stream": True}
    with request(port, "POST", "/v1/chat/completions", body) as response:
        for line in response:
            kind, _, data = line.decode("utf-8").strip().partition(": ")
            if kind != "data" or data == "[DONE]":
                continue
            for choice in json.loads(data).get("choices", ()):
                if choice["delta"].get("content"):
                    yield choice["delta"]["content"]


def generate(
    port: int, texts: list[str], max_new_tokens: int, temperature: float = 0.0
) -> list[Answer]:
    """Continuations of all texts, asked for in one request.

    At a temperature above 0 the i-th text is sampled with seed i.
    """
    sampling: list[dict[str, Any]] = [
        {"temperature": temperature, "max_new_tokens": max_new_tokens} for _ in texts
    ]
    if temperature > 0:
        for seed, each in enumerate(sampling):
            each["sampling_seed"] = seed
    body = {"text": texts, "sampling_params": sampling}
    with request(port, "POST", "/generate", body) as response:
        return [
            Answer(tuple(each["output_ids"]), each["meta_info"].get("spec_verify_ct", 0))
            for each in json.load(response)
        ]
