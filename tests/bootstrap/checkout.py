# SPDX-License-Identifier: Apache-2.0
"""A small checkout in which the real bootstrap.sh runs without a network in seconds.

Its packages are toy wheels of a local folder, its SGLang is an empty package, and its patch
tool only notes that it was called. Everything else is the repository's own.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RELEASE = "9.9.9"  # the default one of upstream.toml
OTHER = "9.9.10.post1"
UPSTREAM = f'''\
default = "{RELEASE}"

[release."{OTHER}"]
version = "{OTHER}"

[release."{RELEASE}"]
version = "{RELEASE}"
'''
BASE_PYTHON = Path(sys.base_prefix, "bin", "python3")
# All that bootstrap.sh may call, besides Python.
TOOLS = (
    "awk bash cat cp cut df dirname du env find flock getconf git grep make mkdir mv rm sed "
    "sha256sum sleep tail touch uname"
).split()

PATCH_TOOL = """\
#!/bin/bash
root=$(cd "$(dirname "$0")/.." && pwd)
echo "$*" >>"$root/patch-tool.calls"
applied=$root/sglang/$2/applied  # $1 is --release
if [[ $* == *--status* ]]; then
    found=$([[ -e $applied ]] && echo true || echo false)
    echo "{\\"problem\\": null, \\"patches\\": [{\\"applied\\": $found}]}"
    [[ $found == true ]]
else
    touch "$applied"
fi
"""

MATERIALISE = """\
import sys
from pathlib import Path

root = Path(__file__).resolve().parents[2]
if (root / "no-wheel").exists():
    sys.exit(4)
release = sys.argv[sys.argv.index("--release") + 1]
package = root / "sglang" / release / "python/sglang/srt/entrypoints"
package.mkdir(parents=True, exist_ok=True)
(package.parents[1] / "__init__.py").touch()
(package / "engine.py").write_text("class Engine: pass\\n")
"""


def write_wheel(folder: Path, name: str, version: str, files: dict[str, str]) -> str:
    """Write a pure wheel. Returns its requirement line with its hash."""
    info = f"{name}-{version}.dist-info"
    contents = files | {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{path},,\n" for path in [*contents, f"{info}/RECORD"])
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in (contents | {f"{info}/RECORD": record}).items():
            archive.writestr(path, text)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    return f"{name}=={version} --hash=sha256:{digest}\n"


class Checkout:
    """One such checkout: its files, the PATH that its runs see, and a way to run it."""

    def __init__(self, root: Path, outside: Path) -> None:
        self.root = root
        self.bin = outside / "bin"
        self.wheels = outside / "wheels"
        self.variables: dict[str, str] = {}

    @property
    def venv(self) -> Path:
        return self.root / ".venv"

    @property
    def other_venv(self) -> Path:
        return self.root / f".venv-{OTHER}"

    def create(self) -> None:
        self.bin.mkdir(parents=True)
        self.wheels.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool))
        self.replace_tool("python3", f'exec {BASE_PYTHON} "$@"')

        scripts = self.root / "scripts"
        shutil.copytree(
            REPOSITORY / "scripts" / "cpu_profile",
            scripts / "cpu_profile",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        for script in ("bootstrap.sh", "releases.sh"):
            shutil.copy(REPOSITORY / "scripts" / script, scripts)
        (self.root / "upstream.toml").write_text(UPSTREAM)
        (scripts / "apply_patches.sh").write_text(PATCH_TOOL)
        (scripts / "apply_patches.sh").chmod(0o755)
        (scripts / "patchset").mkdir()
        (scripts / "patchset" / "materialise.py").write_text(MATERIALISE)

        (self.root / "requirements").mkdir()
        for file in ("pip", f"cpu-{RELEASE}", "dev"):
            name = f"toy_{file[:3]}"
            self.pins(file).write_text(write_wheel(self.wheels, name, "1.0", {f"{name}.py": ""}))
        newer = write_wheel(self.wheels, "toy_cpu", "2.0", {"toy_cpu.py": ""})
        self.pins(f"cpu-{OTHER}").write_text(newer)
        for release in (RELEASE, OTHER):
            self.pins(f"cpu-{release}").with_suffix(".in").write_text("torch==9.0  # the same\n")
        plain = write_wheel(self.wheels, "torch", "9.0", {"torch.py": "build = 'cuda'\n"})
        cpu = write_wheel(self.wheels, "torch", "9.0+cpu", {"torch.py": "build = 'cpu'\n"})
        self.pins("torch-cuda-9.0").write_text(plain.replace("==", "==="))
        self.pins("torch-cpu-9.0").write_text(cpu)

    def pins(self, name: str) -> Path:
        return self.root / "requirements" / f"{name}.txt"

    def replace_tool(self, name: str, script: str | None) -> Path:
        """Put a shell script in a tool's place, or remove the tool."""
        tool = self.bin / name
        tool.unlink(missing_ok=True)
        if script is not None:
            tool.write_text(f"#!/bin/bash\n{script}\n")
            tool.chmod(0o755)
        return tool

    def copy_venv(self, template: Path) -> None:
        """Let `python3 -m venv FOLDER` copy a new environment instead of making one for 5 s."""
        self.replace_tool(
            "python3",
            f'''\
if [[ "$1 $2" == "-m venv" ]]; then exec cp -a {template}/. "$3"; fi
exec {BASE_PYTHON} "$@"''',
        )

    def environment(self) -> dict[str, str]:
        return {
            "PATH": str(self.bin),
            "HOME": str(self.bin.parent),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": self.wheels.as_uri(),
        } | self.variables

    def start(self, *arguments: str) -> subprocess.Popen:
        return subprocess.Popen(
            [self.root / "scripts" / "bootstrap.sh", *arguments],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess:
        process = self.start(*arguments)
        out, err = process.communicate()
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def python(self, code: str, venv: Path | None = None) -> str:
        """Output of a program of a virtual environment, the default release's if none is given."""
        command = [(venv or self.venv) / "bin" / "python", "-c", code]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
