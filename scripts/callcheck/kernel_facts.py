# SPDX-License-Identifier: Apache-2.0
"""What a wheel of sglang-kernel says of its functions, as a small JSON file beside this module.

    PYTHONPATH=scripts python -m callcheck.kernel_facts RELEASE VERSION [--wheel FILE]

fetches sglang-kernel VERSION with pip (350 MB), or takes FILE, and writes
facts/RELEASE/sglang-kernel-VERSION.json, for the functions of the modules that speculative
decoding calls:

* functions: name -> {"parameters": "a, b, c=1.0", "operator": the torch operator or null}, from
  the Python sources, for every name that `sgl_kernel` exports from MODULES;
* operators: name -> schema, from the text that the compiled libraries register;
* dtypes: tensor -> dtype, from the libraries' own messages about a wrong one.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from .signature import parameters_text

PACKAGE, MODULE = "sglang-kernel", "sgl_kernel"
MODULES = ("sampling", "speculative")
FACTS = Path(__file__).resolve().parent / "facts"
_LIBRARY = re.compile(rf"{MODULE}/\w+/common_ops\.abi3\.so")
_DTYPE = re.compile(rb"Expected '(\w+)' to be of type \w+ \((torch\.\w+)\)\.")


def facts_of(wheel: Path) -> dict:
    """The facts of one wheel file. Raises ValueError where it is not as expected."""
    with zipfile.ZipFile(wheel) as archive:
        exported = exports(archive.read(f"{MODULE}/__init__.py").decode())
        functions = {}
        for module in MODULES:
            source = archive.read(f"{MODULE}/{module}.py").decode()
            wanted = exported.get(f"{MODULE}.{module}", set())
            functions |= functions_in(source, wanted)
        wanted_operators = {f["operator"] for f in functions.values()} - {None}
        libraries = sorted(filter(_LIBRARY.fullmatch, archive.namelist()))
        found = [library_facts(archive.read(name), wanted_operators) for name in libraries]
    if not found or any(one != found[0] for one in found):
        raise ValueError(f"{wheel.name}: expected libraries that agree, found {libraries}")
    return {
        "package": PACKAGE,
        "version": wheel.name.split("-")[1],
        "wheel": wheel.name,
        "sha256": hashlib.sha256(wheel.read_bytes()).hexdigest(),
        "libraries": libraries,
        "functions": functions,
        **found[0],
    }


def exports(source: str) -> dict[str, set[str]]:
    """Names that the package's `__init__` imports, by the module they come from."""
    found: dict[str, set[str]] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.setdefault(node.module, set()).update(a.name for a in node.names)
    return found


def functions_in(source: str, wanted: set[str]) -> dict[str, dict]:
    """Facts of the wanted functions of a module; `name = other` is the other one's name too."""
    body = ast.parse(source).body
    defined = {n.name: n for n in body if isinstance(n, ast.FunctionDef)}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
            for target in node.targets:
                defined[ast.unparse(target)] = defined[node.value.id]
    if missing := wanted - defined.keys():
        raise ValueError(f"expected definitions of {sorted(missing)}, found none")
    return {
        name: {"parameters": parameters_text(node), "operator": operator_of(node)}
        for name in sorted(wanted)
        for node in [defined[name]]
    }


def operator_of(function: ast.FunctionDef) -> str | None:
    """The torch operator that a wrapper calls itself, or None."""
    called = re.findall(rf"torch\.ops\.{MODULE}\.(\w+)", ast.unparse(function))
    return called[0] if len(set(called)) == 1 else None


def library_facts(library: bytes, operators: set[str]) -> dict:
    """Schemas of the operators and dtypes of tensors, from the text in a compiled library."""
    schemas = {}
    for name in sorted(operators):
        found = set(re.findall(rb"\0(%s\([^\0]*\) -> [^\0]*)\0" % name.encode(), library))
        if len(found) != 1:
            raise ValueError(f"expected one schema of {name}, found {sorted(found)}")
        schemas[name] = found.pop().decode()
    dtypes: dict[str, str] = {}
    for tensor, dtype in sorted(set(_DTYPE.findall(library))):
        if dtypes.setdefault(tensor.decode(), dtype.decode()) != dtype.decode():
            raise ValueError(f"expected one dtype of {tensor.decode()}, found two")
    return {"operators": schemas, "dtypes": dtypes}


def fetch(version: str, folder: Path) -> Path:
    """The x86_64 wheel, with pip."""
    flags = ["--quiet", "--no-deps", "--no-cache-dir", "--only-binary=:all:", f"--dest={folder}"]
    flags += ["--platform=manylinux2014_x86_64", "--python-version=3.12"]
    command = [sys.executable, "-m", "pip", "download", *flags, f"{PACKAGE}==={version}"]
    if subprocess.run(command).returncode:
        sys.exit(f"kernel_facts: expected pip to fetch {PACKAGE} {version}, found the above")
    return next(folder.glob("*.whl"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("release", help="SGLang release, e.g. 0.5.11")
    parser.add_argument("version", help=f"of {PACKAGE}, e.g. 0.4.1")
    parser.add_argument("--wheel", type=Path, help="use this file, do not fetch")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as tmp:
        facts = facts_of(args.wheel or fetch(args.version, Path(tmp)))
    if facts["version"] != args.version:
        sys.exit(f"kernel_facts: expected {args.version}, found {facts['version']} in the wheel")
    path = FACTS / args.release / f"{PACKAGE}-{args.version}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(facts, indent=1) + "\n")
    print(f"{path}: {len(facts['functions'])} functions, {len(facts['operators'])} operators")


if __name__ == "__main__":
    main()
