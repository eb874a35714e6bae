# SPDX-License-Identifier: Apache-2.0
"""Which series the SGLang of this Python has, read from its files."""

from __future__ import annotations

import importlib.util
import json
import subprocess
from pathlib import Path
from typing import Any

from demo.checkout import ROOT
from demo.failure import last_words

_TOOL = ROOT / "scripts" / "apply_patches.sh"


def installed_sglang() -> Path | None:
    """The folder of the sglang package that this Python would import."""
    try:
        spec = importlib.util.find_spec("sglang")
    except (ImportError, ValueError):
        spec = None
    return Path(spec.origin).resolve().parent if spec and spec.origin else None


def status_command(package: Path, release: str | None) -> list[str]:
    """The patch tool's command for the tree that a package lies in."""
    command = [str(_TOOL), "--status", "--json"]
    if release is not None:
        command += ["--release", release]
    unpacked = ROOT / "sglang"
    if unpacked.resolve() not in package.parents:
        command += ["--root", str(package.parent), "--strip", "2"]
    return command


def describe(release: str | None) -> dict[str, Any]:
    """Id of the repository's series, and how much of it the SGLang that runs here has.

    Args:
        release: the version of the installed SGLang.
    """
    package = installed_sglang()
    if package is None:
        return {"id": None, "problem": "no SGLang is installed"}
    done = subprocess.run(
        status_command(package, release), capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    try:
        status = json.loads(done.stdout)
    except ValueError:
        last = last_words(done)
        return {"id": None, "problem": last}
    applied = [patch["number"] for patch in status["patches"] if patch["applied"]]
    return {
        "id": status["series"],
        "release": status["release"],
        "applied": applied,
        "patches": len(status["patches"]),
        "edited": [*status.get("edited", ()), *status.get("edited_elsewhere", ())],
        "problem": status["problem"],
    }


def in_words(found: dict[str, Any]) -> str:
    """One line for the report."""
    if found["id"] is None:
        return f"unknown: {found['problem']}"
    text = f"{found['id']} for {found['release']}, {len(found['applied'])} of {found['patches']}"
    text += " patches applied"
    if found["edited"]:
        text += f", edited: {', '.join(found['edited'])}"
    return text
