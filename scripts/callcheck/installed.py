# SPDX-License-Identifier: Apache-2.0
"""Signatures as Python itself reports them, against the facts and the sources.

Only with `python -m callcheck --installed`, in an environment that can import sgl_kernel.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import inspect
import re

from .calls import Reached
from .kernel_facts import MODULE
from .signature import from_text


def report(all_facts: list[dict], reached: list[Reached]) -> list[str]:
    """Compare, print a line for each difference and a summary; returns the differences.

    Functions inside functions cannot be imported and are left to the sources.
    """
    version = importlib.metadata.version("sglang-kernel")
    facts = [one for one in all_facts if one["version"] == version]
    if not facts:
        known = ", ".join(one["version"] for one in all_facts)
        problems = [f"expected sglang-kernel {known}, found {version}; install one of these"]
    else:
        problems = kernel_differences(facts[0])
    callees = {
        (one.module, one.name): one
        for one in reached
        if one.module != MODULE and "<locals>" not in one.name
    }
    problems += [text for one in callees.values() for text in sglang_difference(one)]
    for problem in problems:
        print(f"callcheck: {problem}")
    print(
        f"callcheck: installed sglang-kernel {version} and {len(callees)} callees in sglang, "
        f"imported: {len(problems)} differences"
    )
    return problems


def kernel_differences(facts: dict) -> list[str]:
    """What the imported sgl_kernel has otherwise than its facts say."""
    kernel = importlib.import_module(MODULE)
    operators = getattr(importlib.import_module("torch").ops, MODULE)
    found = []
    for name, function in facts["functions"].items():
        real = inspect.signature(getattr(kernel, name))
        if differ(real, from_text(function["parameters"])):
            found.append(f"{MODULE}.{name}: expected ({function['parameters']}), found {real}")
    for name, schema in facts["operators"].items():
        real = str(getattr(operators, name).default._schema).removeprefix(f"{MODULE}::")
        if normal_schema(real) != normal_schema(schema):
            found.append(f"torch.ops.{MODULE}.{name}: expected {schema}, found {real}")
    return found


def normal_schema(schema: str) -> str:
    """torch writes `Tensor($0! -> ) out` for what a library registers as `Tensor! out`."""
    return re.sub(r"Tensor\(\$?\w+!(?: -> \w*)?\)", "Tensor!", schema)


def sglang_difference(one: Reached) -> list[str]:
    """How the imported callee differs from its definition in the sources, if it does."""
    if one.signature is None:
        return []
    value = importlib.import_module(one.module)
    for part in one.name.split("."):
        owner, value = value, inspect.getattr_static(value, part)
    value = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
    real = inspect.signature(value)
    expected = list(one.signature.parameters.values())
    found = list(real.parameters.values())
    if inspect.isclass(owner) and len(found) == len(expected) + 1:  # `self` or `cls`
        found = found[1:]
    if differ(inspect.Signature(found), inspect.Signature(expected)):
        return [f"{one.module}.{one.name}: expected {one.signature}, found {real}"]
    return []


def differ(a: inspect.Signature, b: inspect.Signature) -> bool:
    """Whether two signatures take different calls: names, kinds and which have defaults."""

    def shape(signature: inspect.Signature) -> list:
        return [
            (p.name, p.kind, p.default is inspect.Parameter.empty)
            for p in signature.parameters.values()
        ]

    return shape(a) != shape(b)
