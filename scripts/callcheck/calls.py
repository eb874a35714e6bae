# SPDX-License-Identifier: Apache-2.0
"""The calls in some lines of a module, and the definitions that they reach.

A callee is found through imports, through `self`, and through objects whose class is written
down: an annotated parameter or field, a constructor's result, a function's annotated result.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from .signature import Function, misfit
from .sources import (
    Definition,
    External,
    Missing,
    Module,
    Target,
    ancestry,
    lacks,
    method,
    signature,
)


@dataclass(frozen=True)
class Reached:
    """One callee of a call: its module and name, its signature, and where the call is.

    signature: None where it is not known. problem: why the call does not fit, or None.
    """

    module: str
    name: str
    signature: inspect.Signature | None
    where: str
    line: int
    problem: str | None

    def __str__(self) -> str:
        return f"{self.where} line {self.line}: {self.module}.{self.name}: {self.problem or 'fits'}"


def check(
    module: Module,
    lines: set[int] | None,
    external: Callable[[External], inspect.Signature | None],
) -> Iterator[Reached]:
    """Every callee that is found, of every call that touches `lines` (None: all lines).

    external: the signature of a name from outside the tree, None if it is nobody's concern; raises
    LookupError when it should be known and is not.
    """
    for scope, call in _calls(module.tree, (None, None)):
        if lines is not None and lines.isdisjoint(range(call.lineno, call.end_lineno + 1)):
            continue
        for target, bound in _targets(_Types(module, *scope), call.func):
            found = problem = None
            if isinstance(target, Missing):
                origin, name = target.module, target.name
                problem = "expected a definition, found none"
            elif isinstance(target, External):
                origin, name = target.module, target.name
                try:
                    found = external(target)
                except LookupError as unknown:
                    problem = str(unknown)
                if found is None and problem is None:
                    continue
            else:
                origin, name = target.module.name, target.qualified_name
                found = signature(target, bound)
            if found is not None:
                problem = misfit(call, found)
            yield Reached(origin, name, found, module.name, call.lineno, problem)


Scope = tuple[ast.ClassDef | None, Function | None]


def _calls(node: ast.AST, scope: Scope) -> Iterator[tuple[Scope, ast.Call]]:
    """Calls with the class and the outermost function around them."""
    for child in ast.iter_child_nodes(node):
        inner = scope
        if isinstance(child, ast.ClassDef):
            inner = (child, None)
        elif isinstance(child, Function):
            inner = (scope[0], scope[1] or child)
        elif isinstance(child, ast.Call):
            yield scope, child
        yield from _calls(child, inner)


def _targets(types: _Types, func: ast.expr) -> Iterator[tuple[Target, bool]]:
    """(what is called, whether it has been given `self`)."""
    module = types.module
    if isinstance(func, ast.Subscript):  # a Triton kernel: kernel[grid](...)
        func = func.value
    if isinstance(func, ast.Name):
        if func.id == "cls" and types.owner:
            yield Definition(module, types.owner), False
        for target in module.resolve(func.id):
            yield target, False
    elif isinstance(func, ast.Attribute):
        value, name = func.value, func.attr
        if _is_super(value) and types.owner:
            for base in ancestry(Definition(module, types.owner))[0][1:]:
                if found := method(base, name):
                    yield found, True
                    return
        elif isinstance(value, ast.Name) and any(True for _ in module.modules(value.id)):
            for other in module.modules(value.id):
                if not other.has(name):
                    yield Missing(other.name, name), False
                for target in other.resolve(name):
                    yield target, False
        else:
            yield from _methods(types, value, name)


def _methods(types: _Types, value: ast.expr, name: str) -> Iterator[tuple[Target, bool]]:
    if isinstance(value, ast.Name):
        for target in types.module.resolve(value.id):  # Class.method(...)
            if isinstance(target, Definition) and target.is_class:
                if found := method(target, name):
                    yield found, False
                return
    owner = types.of(value)
    if owner is None:
        return
    if found := method(owner, name):
        yield found, True
    elif lacks(owner, name):
        yield Missing(owner.module.name, f"{owner.qualified_name}.{name}"), True


def _is_super(value: ast.expr) -> bool:
    return isinstance(value, ast.Call) and ast.unparse(value) == "super()"


class _Types:
    """Classes of expressions inside one function, as far as they are written down."""

    def __init__(self, module: Module, owner: ast.ClassDef | None, function: Function | None):
        self.module, self.owner, self.function = module, owner, function

    def of(self, value: ast.expr, depth: int = 0) -> Definition | None:
        if depth > 8:  # x = x.y in a loop
            return None
        if isinstance(value, ast.Name):
            return self._of_name(value.id, depth)
        if isinstance(value, ast.Attribute):
            owner = self.of(value.value, depth + 1)
            return _attribute(owner, value.attr) if owner else None
        if isinstance(value, ast.Call):
            for target, _ in _targets(self, value.func):
                if isinstance(target, Definition):
                    return target if target.is_class else _result(target)
        return None

    def _of_name(self, name: str, depth: int) -> Definition | None:
        if name == "self" and self.owner:
            return Definition(self.module, self.owner)
        if self.function is None:
            return None
        for node in ast.walk(self.function):
            if isinstance(node, ast.arg) and node.arg == name and node.annotation:
                return _annotated(self.module, node.annotation)
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
                return _annotated(self.module, node.annotation)
        for node in ast.walk(self.function):
            if isinstance(node, ast.Assign) and [ast.unparse(t) for t in node.targets] == [name]:
                return self.of(node.value, depth + 1)
            if isinstance(node, ast.For) and (
                found := self._of_loop(name, node.target, node.iter, depth + 1)
            ):
                return found
        return None

    def _of_loop(
        self, name: str, target: ast.expr, values: ast.expr, depth: int
    ) -> Definition | None:
        """The class of `name` in `for target in values`, through enumerate and zip."""
        if isinstance(target, ast.Tuple) and isinstance(values, ast.Call):
            called, given = ast.unparse(values.func), values.args
            given = [None, *given] if called == "enumerate" else given if called == "zip" else []
            for part, value in zip(target.elts, given):  # noqa: B905 - zip may have *rest
                if value is not None and (found := self._of_loop(name, part, value, depth)):
                    return found
        elif isinstance(values, ast.Attribute) and ast.unparse(target) == name:
            owner = self.of(values.value, depth)
            return _attribute(owner, values.attr, item=True) if owner else None
        return None


def _annotated(module: Module, annotation: ast.expr, item: bool = False) -> Definition | None:
    """The class of the tree that an annotation names: C, "C", Optional[C], C | None.

    item: the class of the elements instead, of List[C] or list[C].
    """
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    if isinstance(annotation, ast.Subscript):
        outer = ast.unparse(annotation.value)
        if outer == "Optional":
            return _annotated(module, annotation.slice, item)
        return _annotated(module, annotation.slice) if item and outer in ("List", "list") else None
    if item:
        return None
    if isinstance(annotation, ast.BinOp):
        return _annotated(module, annotation.left)
    if isinstance(annotation, ast.Name):
        for target in module.resolve(annotation.id):
            if isinstance(target, Definition) and target.is_class:
                return target
    return None


def _result(function: Definition) -> Definition | None:
    returns = function.node.returns
    return _annotated(function.module, returns) if returns else None


def _attribute(owner: Definition, name: str, item: bool = False) -> Definition | None:
    """The class of an attribute, or of its items: an annotated field, a property, or
    `self.name = ...`.
    """
    for definition in ancestry(owner)[0]:
        for node in definition.node.body:
            if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == name:
                return _annotated(definition.module, node.annotation, item)
            if item:
                continue
            if isinstance(node, Function) and node.name == name:
                return _result(Definition(definition.module, node))
        for function in definition.node.body:
            if item or not isinstance(function, Function):
                continue
            types = _Types(definition.module, definition.node, function)
            for node in ast.walk(function):
                if isinstance(node, ast.AnnAssign) and ast.unparse(node.target) == f"self.{name}":
                    return _annotated(definition.module, node.annotation)
                assigned = map(ast.unparse, node.targets) if isinstance(node, ast.Assign) else ()
                if f"self.{name}" in assigned and (found := types.of(node.value, 6)):
                    return found
    return None
