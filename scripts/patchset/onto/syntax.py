# SPDX-License-Identifier: Apache-2.0
"""Walks over parsed Python that leave out what cannot matter: upstream's files are large."""

from __future__ import annotations

import ast
from bisect import bisect_left
from collections.abc import Iterator, Sequence

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
_BLOCKS = ("body", "orelse", "finalbody", "handlers", "cases")


def imported_module(node: ast.ImportFrom, package: Sequence[str]) -> str:
    """The dotted name of the module that `from module import ...` in `package` means."""
    if not node.level:
        return node.module or ""
    return ".".join([*package[: len(package) - node.level + 1], *filter(None, [node.module])])


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements, handlers and cases directly inside `node`, in order."""
    for name in _BLOCKS:
        block = getattr(node, name, None)
        if isinstance(block, list):
            yield from block


def all_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Every statement at any depth."""
    for child in statements(node):
        yield child
        yield from all_statements(child)


def nodes_on(node: ast.AST, lines: list[int]) -> Iterator[ast.AST]:
    """Every node that has one of `lines`, which are sorted, between its first and its last."""
    for child in ast.iter_child_nodes(node):
        first = getattr(child, "lineno", None)
        if first is not None:
            # A definition starts at its first decorator.
            first = min([first, *(d.lineno for d in getattr(child, "decorator_list", []))])
            at = bisect_left(lines, first)
            if at == len(lines) or lines[at] > child.end_lineno:
                continue
        yield child
        yield from nodes_on(child, lines)
