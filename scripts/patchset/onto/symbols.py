# SPDX-License-Identifier: Apache-2.0
"""Names that a patch uses and that another release no longer has.

A name counts as gone only if the same look at the release that the series was written for finds
it: what this cannot see (star imports, `__getattr__`, names made at run time) is never reported.
"""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from ..upstream import PACKAGE
from .scopes import Scopes
from .syntax import DEFINITIONS, FUNCTIONS, all_statements, imported_module, nodes_on

if TYPE_CHECKING:
    from .sources import Sources

_MODULE_NAMES = {"__file__", "__name__", "__doc__", "__package__", "__spec__", "__path__"}
_KNOWN = set(dir(builtins)) | _MODULE_NAMES | {"__class__"}


class Module:
    """One Python file. Raises SyntaxError, or ValueError for a null byte."""

    def __init__(self, source: bytes):
        self.tree = ast.parse(source)
        self._source = source

    @cached_property
    def bound(self) -> set[str] | None:
        """Names that the module has at its top level, or None when that cannot be told."""
        found: set[str] = set()
        for node in _top_level(self.tree):
            if isinstance(node, DEFINITIONS):
                found.add(node.name)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                found |= {alias.asname or alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
        return None if {"*", "__getattr__"} & found else found

    @cached_property
    def undefined(self) -> set[str]:
        """Names that its code reads and nothing defines."""
        table = symtable.symtable(self._source, "module", "exec")
        known = self.bound
        if known is None:
            return set()
        assigned = {s.get_name() for s in table.get_symbols() if s.is_assigned()}
        return _global_reads(table) - known - assigned - _KNOWN

    def imported_from(self, path: str) -> set[str]:
        """The package's modules that the file, which is at `path`, imports names from."""
        found = {_absolute(node, path) for node in self._walked if isinstance(node, ast.ImportFrom)}
        return {dotted for dotted in found if dotted.split(".")[0] == PACKAGE}

    @cached_property
    def _walked(self) -> list[ast.AST]:
        return list(all_statements(self.tree))

    @cached_property
    def scopes(self) -> Scopes:
        return Scopes(self.tree)

    def definitions(self, name: str) -> list[str]:
        """The parameters of each function or method `name`, as text."""
        return sorted(ast.unparse(node.args) for node in self._functions.get(name, []))

    @cached_property
    def _functions(self) -> dict[str, list[ast.AST]]:
        found: dict[str, list[ast.AST]] = {}
        for node in self._walked:
            if isinstance(node, FUNCTIONS):
                found.setdefault(node.name, []).append(node)
        return found


def _top_level(tree: ast.AST) -> Iterator[ast.AST]:
    """Every node outside functions and classes, and the definitions themselves."""
    for node in ast.iter_child_nodes(tree):
        yield node
        if isinstance(node, ast.If) and _is_type_checking(node.test):
            for other in node.orelse:
                yield other
                yield from _top_level(other)
        elif not isinstance(node, (*DEFINITIONS, ast.Lambda)):
            yield from _top_level(node)


def _is_type_checking(test: ast.AST) -> bool:
    """What stands under it is not there at run time."""
    return getattr(test, "attr", getattr(test, "id", "")) == "TYPE_CHECKING"


def _global_reads(table: symtable.SymbolTable) -> set[str]:
    found = {s.get_name() for s in table.get_symbols() if s.is_referenced() and s.is_global()}
    if table.get_type() == "module":
        found = {s.get_name() for s in table.get_symbols() if s.is_referenced()}
    for child in table.get_children():
        found |= _global_reads(child)
    return found


@dataclass(frozen=True)
class Used:
    """What the lines that a patch adds to one file take from elsewhere."""

    imports: list[tuple[str, str]]
    """(module, name) of each `from module import name` and `import module.name`."""
    attributes: set[str]
    """`.name`, and the names of keyword arguments."""
    calls: set[str]
    binds: set[str]
    """Names that the lines themselves define: functions, parameters, attributes, imports."""


def used(module: Module, path: str, lines: set[int]) -> Used:
    """Read the given lines (from 1) of the file at `path`."""
    imports: list[tuple[str, str]] = []
    attributes: set[str] = set()
    calls: set[str] = set()
    binds: set[str] = set()
    for node in nodes_on(module.tree, sorted(lines)):
        if getattr(node, "lineno", None) in lines:
            binds |= _binds(node)
        if isinstance(node, ast.Import):
            imports += [
                tuple(alias.name.rsplit(".", 1))
                for alias in node.names
                if alias.lineno in lines and alias.name.startswith(f"{PACKAGE}.")
            ]
        elif isinstance(node, ast.ImportFrom):
            dotted = _absolute(node, path)
            if dotted.split(".")[0] == PACKAGE:
                imports += [
                    (dotted, alias.name)
                    for alias in node.names
                    if alias.lineno in lines and alias.name != "*"
                ]
        elif isinstance(node, ast.Attribute) and node.end_lineno in lines:
            attributes.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg and node.lineno in lines:
            attributes.add(node.arg)
        elif isinstance(node, ast.Call) and node.func.end_lineno in lines:
            name = getattr(node.func, "attr", getattr(node.func, "id", None))
            if name is not None:
                calls.add(name)
    return Used(imports, attributes, calls, binds)


def _binds(node: ast.AST) -> set[str]:
    if isinstance(node, DEFINITIONS):
        return {node.name}
    if isinstance(node, ast.arg):
        return {node.arg}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, (ast.Attribute, ast.Name)) and isinstance(node.ctx, ast.Store):
        return {node.attr if isinstance(node, ast.Attribute) else node.id}
    return set()


def dotted_path(path: str) -> str:
    """The module that a file of the repository is."""
    parts = PurePosixPath(path).with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _absolute(node: ast.ImportFrom, path: str) -> str:
    return imported_module(node, PurePosixPath(path).parts[1:-1])


def importable(sources: Sources, dotted: str, name: str) -> bool:
    """Whether `from dotted import name` finds something, as far as can be told."""
    path = sources.path_of(dotted)
    if sources.path_of(f"{dotted}.{name}") or sources.has_folder(f"{dotted}.{name}"):
        return True
    if path is None:
        return False
    module = sources.module(path)
    return module is None or module.bound is None or name in module.bound
