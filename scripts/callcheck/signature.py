# SPDX-License-Identifier: Apache-2.0
"""Signatures read from sources, and whether a call's arguments bind to one."""

from __future__ import annotations

import ast
import inspect
from inspect import Parameter

Function = ast.FunctionDef | ast.AsyncFunctionDef


def of_function(node: Function) -> inspect.Signature:
    """The signature of a definition. A default is kept as its source text."""
    spec = node.args
    positional = [*spec.posonlyargs, *spec.args]
    required = len(positional) - len(spec.defaults)
    defaults = [None] * required + list(spec.defaults)
    parameters = []
    for place, (arg, default) in enumerate(zip(positional, defaults, strict=True)):
        only = place < len(spec.posonlyargs)
        kind = Parameter.POSITIONAL_ONLY if only else Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(_parameter(arg, kind, default))
    if spec.vararg:
        parameters.append(Parameter(spec.vararg.arg, Parameter.VAR_POSITIONAL))
    for arg, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
        parameters.append(_parameter(arg, Parameter.KEYWORD_ONLY, default))
    if spec.kwarg:
        parameters.append(Parameter(spec.kwarg.arg, Parameter.VAR_KEYWORD))
    return inspect.Signature(parameters)


def _parameter(arg: ast.arg, kind: inspect._ParameterKind, default: ast.expr | None) -> Parameter:
    text = Parameter.empty if default is None else ast.unparse(default)
    return Parameter(arg.arg, kind, default=text)


def without_first(signature: inspect.Signature) -> inspect.Signature:
    """The signature of a bound method, which has been given `self`."""
    parameters = list(signature.parameters.values())
    if parameters and parameters[0].kind is not Parameter.VAR_POSITIONAL:
        parameters = parameters[1:]
    return inspect.Signature(parameters)


def parameters_text(node: Function) -> str:
    """The parameters of a definition without annotations: `a, b, *, c=1`."""
    spec = ast.parse(ast.unparse(node)).body[0].args
    for arg in ast.walk(spec):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    return ast.unparse(spec)


def from_text(parameters: str) -> inspect.Signature:
    """The inverse of `parameters_text`. Raises SyntaxError."""
    return of_function(ast.parse(f"def f({parameters}): ...").body[0])


def misfit(call: ast.Call, signature: inspect.Signature) -> str | None:
    """Why the call's arguments do not bind, in words, or None when they do.

    `*values` and `**values` in the call may hold anything that is missing, so beside them only
    unknown names and surplus arguments are found.
    """
    spread = any(isinstance(a, ast.Starred) for a in call.args)
    spread |= any(k.arg is None for k in call.keywords)
    positional = [None for a in call.args if not isinstance(a, ast.Starred)]
    named = {k.arg: None for k in call.keywords if k.arg is not None}
    try:
        (signature.bind_partial if spread else signature.bind)(*positional, **named)
    except TypeError as problem:
        return str(problem)
    return None
