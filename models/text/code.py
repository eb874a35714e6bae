# SPDX-License-Identifier: Apache-2.0
"""Lines that look like Python code."""

from models.text.chooser import Chooser
from models.text.words import NAMES, THINGS, VARIABLES, VERBS


def code(chooser: Chooser) -> tuple[str, str]:
    """``(prompt, completion)``: the head of a function or class, and its body."""
    form = chooser.pick((_function, _loop, _class))
    return form(chooser)


def _call(chooser: Chooser, function: str, verb: str) -> str:
    if chooser.chance(0.4):
        return ""
    variable = chooser.lean(VARIABLES, verb)
    numbers = ", ".join(str(chooser.number(0, 20)) for _ in range(2))
    return f"\n{variable} = {function}({numbers})\nprint({variable})\n"


def _function(chooser: Chooser) -> tuple[str, str]:
    verb, noun = chooser.pick(VERBS), chooser.pick(VARIABLES)
    first, second = chooser.distinct(VARIABLES[:7], 2)
    result = chooser.lean(VARIABLES, first)
    operator = chooser.lean(("+", "-", "*", "//", "%"), verb)
    body = f"\n    {result} = {first} {operator} {second}\n"
    if chooser.chance(0.5):
        comparison = chooser.lean((">", "<", "==", "!="), noun)
        fallback = chooser.lean((first, second, "None", "0"), result)
        body += f"    if {result} {comparison} {chooser.pick((0, 1, 10, 100))}:\n"
        body += f"        return {fallback}\n"
    body += f"    return {result}\n" + _call(chooser, f"{verb}_{noun}", verb)
    return f"def {verb}_{noun}({first}, {second}):", body


def _loop(chooser: Chooser) -> tuple[str, str]:
    verb, thing = chooser.pick(VERBS), chooser.pick(THINGS)
    result = chooser.lean(VARIABLES, thing)
    steps = (
        f"        {result} += {thing}\n",
        f"        if {thing} > {result}:\n            {result} = {thing}\n",
        f"        if not {thing}:\n            continue\n        {result} += 1\n",
        f"        print({thing}, {result})\n",
    )
    body = f"\n    {result} = {chooser.lean(('0', '1', 'None', '[]'), verb)}\n"
    body += f"    for {thing} in {thing}s:\n{chooser.lean(steps, verb)}    return {result}\n"
    body += _call(chooser, f"{verb}_{thing}s", verb)
    return f"def {verb}_{thing}s({thing}s):", body


def _class(chooser: Chooser) -> tuple[str, str]:
    name, suffix = chooser.pick(NAMES), chooser.pick(("Box", "Queue", "Table", "Map"))
    first, second = chooser.distinct(VARIABLES[:7], 2)
    verb = chooser.lean(VERBS, first)
    value = chooser.lean(VARIABLES, verb)
    methods = (
        f"        self.{first} = {value}\n        return self.{second}\n",
        f"        return self.{first} + {value}\n",
        f"        self.{second} -= {value}\n        return self\n",
    )
    prompt = f"class {name}{suffix}:\n    def __init__(self, {first}, {second}):"
    body = f"\n        self.{first} = {first}\n        self.{second} = {second}\n"
    body += f"\n    def {verb}_{first}(self, {value}):\n{chooser.lean(methods, suffix)}"
    return prompt, body
