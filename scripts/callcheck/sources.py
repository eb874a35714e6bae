# SPDX-License-Identifier: Apache-2.0
"""Definitions in a tree of Python sources, found by what names are bound to."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from patchset.onto.syntax import imported_module

from .signature import Function, of_function, without_first

Node = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True)
class Definition:
    """A function or class and the module in which it stands."""

    module: Module
    node: Node

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    @property
    def qualified_name(self) -> str:
        """`name`, `Class.name`, or `function.<locals>.name`, as Python has it."""
        return _path_to(self.module.tree, self.node) or self.node.name


def _path_to(around: ast.AST, node: Node) -> str:
    for child in ast.iter_child_nodes(around):
        if child is node:
            return node.name
        if found := _path_to(child, node):
            if isinstance(child, ast.ClassDef):
                return f"{child.name}.{found}"
            return f"{child.name}.<locals>.{found}" if isinstance(child, Function) else found
    return ""


@dataclass(frozen=True)
class External:
    """A name of a module that is not in the tree, such as `sgl_kernel`."""

    module: str
    name: str


@dataclass(frozen=True)
class Missing:
    """A name that a module or class of the tree should define and does not."""

    module: str
    name: str


Target = Definition | External | Missing


@dataclass(eq=False)
class Module:
    sources: Sources
    name: str
    path: Path

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.path.read_text(encoding="utf-8"), str(self.path))

    @cached_property
    def bindings(self) -> dict[str, list[Binding]]:
        """What each name can stand for: any of them, where branches bind it differently.

        Functions inside functions and imports inside functions count for the whole module.
        """
        found: dict[str, list[Binding]] = {}
        for node in ast.walk(self.tree):
            for name, binding in _bindings(node, self):
                found.setdefault(name, []).append(binding)
        for owner in ast.walk(self.tree):
            for node in owner.body if isinstance(owner, ast.ClassDef) else ():
                if isinstance(node, Node):  # a method is no name of the module
                    found[node.name].remove(Binding(node=node))
        return {name: bindings for name, bindings in found.items() if bindings}

    def resolve(self, name: str, seen: frozenset = frozenset()) -> list[Target]:
        """Every function, class or external name that `name` can stand for here."""
        if (self.name, name) in seen:
            return []
        seen |= {(self.name, name)}
        found: list[Target] = []
        for binding in self.bindings.get(name, []):
            if binding.node is not None:
                found.append(Definition(self, binding.node))
            elif binding.alias:
                found += self.resolve(binding.alias, seen)
            elif binding.attribute:
                found += self._imported(binding, seen)
        if name not in self.bindings:
            for binding in self.bindings.get("*", []):
                other = self.sources.module(binding.module)
                found += other.resolve(name, seen) if other else []
        return list(dict.fromkeys(found))

    def _imported(self, binding: Binding, seen: frozenset) -> list[Target]:
        if not self.sources.owns(binding.module):
            return [External(binding.module, binding.attribute)]
        if self.sources.module(f"{binding.module}.{binding.attribute}"):
            return []  # a module
        other = self.sources.module(binding.module)
        if other is None or not other.has(binding.attribute):
            return [Missing(binding.module, binding.attribute)]
        return other.resolve(binding.attribute, seen)

    def has(self, name: str) -> bool:
        """Whether the module binds the name in any way."""
        if name in self.bindings or name in self.assigned:
            return True
        stars = (self.sources.module(b.module) for b in self.bindings.get("*", []))
        return any(other is None or other.has(name) for other in stars)

    @cached_property
    def assigned(self) -> set[str]:
        """Names that are given a value anywhere: no signature is known of these."""
        names = (n for n in ast.walk(self.tree) if isinstance(n, ast.Name))
        return {n.id for n in names if isinstance(n.ctx, ast.Store)}

    def modules(self, name: str) -> Iterator[Module]:
        """Modules of the tree that `name` can stand for here."""
        for binding in self.bindings.get(name, []):
            full = ".".join(filter(None, (binding.module, binding.attribute)))
            if binding.module and (other := self.sources.module(full)):
                yield other


@dataclass(frozen=True)
class Binding:
    """One of: a definition, `name = alias`, or an import of a module's attribute or a module."""

    node: Node | None = None
    alias: str = ""
    module: str = ""
    attribute: str = ""


def _bindings(node: ast.AST, module: Module) -> Iterator[tuple[str, Binding]]:
    if isinstance(node, Node):
        yield node.name, Binding(node=node)
    elif isinstance(node, ast.ImportFrom):
        origin = _origin(node, module)
        for a in node.names:
            yield a.asname or a.name, Binding(module=origin, attribute=a.name)
    elif isinstance(node, ast.Import):
        for a in node.names:
            yield a.asname or a.name.split(".")[0], Binding(module=a.name)
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, Binding(alias=node.value.id)


def _origin(node: ast.ImportFrom, module: Module) -> str:
    parts = module.name.split(".")
    return imported_module(node, parts if module.path.name == "__init__.py" else parts[:-1])


@dataclass(eq=False)
class Sources:
    """A folder of packages; only `package` is looked into."""

    folder: Path
    package: str
    _modules: dict[str, Module | None] = field(default_factory=dict)

    def owns(self, name: str) -> bool:
        return name.split(".")[0] == self.package

    def module(self, name: str) -> Module | None:
        if name not in self._modules:
            base = self.folder.joinpath(*name.split("."))
            files = (base / "__init__.py", base.with_suffix(".py"))
            path = next((f for f in files if f.is_file()), None) if self.owns(name) else None
            self._modules[name] = Module(self, name, path) if path else None
        return self._modules[name]

    def module_at(self, path: str) -> Module:
        """The module in a file, by its path under the folder."""
        parts = path.removesuffix(".py").removesuffix("/__init__").split("/")
        module = self.module(".".join(parts))
        if module is None:
            raise FileNotFoundError(f"expected {self.folder / path}, found none")
        return module


def ancestry(definition: Definition) -> tuple[list[Definition], bool]:
    """(the class and those of its bases that the tree has, whether others exist)."""
    found, foreign = [definition], False
    for base in definition.node.bases:
        base = base.value if isinstance(base, ast.Subscript) else base
        targets = definition.module.resolve(base.id) if isinstance(base, ast.Name) else []
        known = [t for t in targets if isinstance(t, Definition) and t.is_class]
        foreign |= not known and ast.unparse(base) not in ("ABC", "object", "abc.ABC")
        for one in known[:1]:
            more, other = ancestry(one)
            found += [d for d in more if d not in found]
            foreign |= other
    return found, foreign


def lacks(definition: Definition, name: str) -> bool:
    """Whether an instance surely has no attribute of this name."""
    line, foreign = ancestry(definition)
    if foreign or name.startswith("__"):
        return False
    for owner in line:
        for node in ast.walk(owner.node):
            if isinstance(node, Node) and node.name == name:
                return False
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
                return False
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.ctx, ast.Store)
                and (node.attr == name)
            ):
                return False
            if isinstance(node, Node) and node.name == "__getattr__":
                return False
    return True


def method(definition: Definition, name: str) -> Definition | None:
    """The method of a class or of the first base that has it. Not for properties."""
    for owner in ancestry(definition)[0]:
        for node in owner.node.body:
            if isinstance(node, Function) and node.name == name:
                marks = {ast.unparse(d) for d in node.decorator_list}
                return (
                    None
                    if marks & {"property", "cached_property", "overload"}
                    else (Definition(owner.module, node))
                )
    return None


def signature(target: Definition, bound: bool = False) -> inspect.Signature | None:
    """What a call is given to; None where a base from outside decides.

    bound: the definition is a method and is called on an instance.
    """
    if target.is_class:
        return _constructor(target)
    marks = {ast.unparse(d) for d in target.node.decorator_list}
    full = of_function(target.node)
    return (
        without_first(full)
        if "classmethod" in marks or (bound and "staticmethod" not in marks)
        else full
    )


def _constructor(definition: Definition) -> inspect.Signature | None:
    line, foreign = ancestry(definition)
    if any(_is_dataclass(d.node) for d in line[:1]):
        return _dataclass_signature(line)
    for owner in line:
        if _is_dataclass(owner.node):
            return _dataclass_signature(line[line.index(owner) :])
        for node in owner.node.body:
            if isinstance(node, Function) and node.name == "__init__":
                return without_first(of_function(node))
    return None if foreign else inspect.Signature()


def _is_dataclass(node: ast.ClassDef) -> bool:
    marks = [d.func if isinstance(d, ast.Call) else d for d in node.decorator_list]
    return any(ast.unparse(m) in ("dataclass", "dataclasses.dataclass") for m in marks)


def _dataclass_signature(line: list[Definition]) -> inspect.Signature:
    fields: dict[str, inspect.Parameter] = {}
    for owner in (d for d in reversed(line) if _is_dataclass(d.node)):
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        if any("kw_only=True" in ast.unparse(d) for d in owner.node.decorator_list):
            kind = inspect.Parameter.KEYWORD_ONLY
        for node in owner.node.body:
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            if ast.unparse(node.annotation).startswith(("ClassVar", "typing.ClassVar")):
                continue
            default, included = _field_default(node.value)
            if included:
                name = node.target.id
                fields[name] = inspect.Parameter(name, kind, default=default)
    return inspect.Signature(sorted(fields.values(), key=lambda parameter: parameter.kind))


def _field_default(value: ast.expr | None) -> tuple[object, bool]:
    """(default or Parameter.empty, whether the constructor takes the field)."""
    if value is None:
        return inspect.Parameter.empty, True
    if isinstance(value, ast.Call) and ast.unparse(value.func).endswith("field"):
        given = {k.arg: ast.unparse(k.value) for k in value.keywords}
        default = given.get("default", given.get("default_factory", inspect.Parameter.empty))
        return default, given.get("init") != "False"
    return ast.unparse(value), True
