# SPDX-License-Identifier: Apache-2.0
"""The form that every series must have: what a reviewer should not have to look for."""

from __future__ import annotations

import os
import re
from pathlib import Path

from .git import ABSENT_BLOB
from .ladder import same_state
from .patchfile import (
    PatchFile,
    PatchFormatError,
    Section,
    parse,
    split_trailers,
    trailer_words,
)
from .refresh import TODO
from .root import PREFIX
from .series import BESIDE, LISTED, Patch, parse_lock, series_names

_HEADER = re.compile(
    rb"From 0{40} Mon Sep 17 00:00:00 2001\n"
    rb"From: [^\n]+ <[^\n<>]+>\n"
    rb"Date: \w{3}, \d{1,2} \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}\n"
    rb"Subject: \[PATCH\] [^\n]+\n(?: [^\n]+\n)*"
    rb"\n(?P<message>.*\n)---\n",
    re.DOTALL,
)
_REQUIRED = ("Forwarded", "Depends", "Test", "Remove-When")
_MARKERS = (b"<<<<<<<", b">>>>>>>", b"|||||||")


def lint(folder: Path, project: Path) -> list[str]:
    """Every finding in the series at `folder`, as `file: what is wrong`; empty when clean.

    project: the folder that the paths of `Test:` trailers are relative to.
    """
    findings: list[str] = []
    patches = []
    for listed in _check_list(folder, findings):
        found = LISTED.fullmatch(listed)
        if not (folder / listed).is_file():
            findings.append(f"series: {listed} is listed, but there is no such file")
        elif found:
            patches.append(Patch(found[2], (folder / listed).read_bytes(), found[1] or ""))
    _check_shared(folder, patches, findings)
    _check_lock(folder, patches, findings)
    earlier: list[str] = []
    left: dict = {}
    for patch in patches:
        try:
            content = parse(patch.data)
        except PatchFormatError as problem:
            findings.append(f"{patch.name}: {problem}")
        else:
            found = [
                # The order of a shared patch's own series is the one that its header is about.
                *_check_header(content, project, None if patch.lender else earlier),
                *_check_diff(content),
                *_check_chain(content, left),
            ]
            findings += [f"{patch.name}: {what}" for what in found]
        earlier.append(patch.number)
    return findings


def _check_list(folder: Path, findings: list[str]) -> list[str]:
    """Listed = on disk, in the order of the numbers. Returns each listed name once."""
    try:
        text = (folder / "series").read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        findings.append(f"series: cannot be read: {problem}")
        return []
    if "\r" in text:
        findings.append("series: has CRLF line ends")
    if text and not text.endswith("\n"):
        findings.append("series: the last line has no newline")
    seen: list[str] = []
    last = ""
    for line, listed in series_names(text):
        if listed in seen:
            findings.append(f"series: line {line}: {listed} is listed twice")
            continue
        seen.append(listed)
        found = LISTED.fullmatch(listed)
        if not found:
            findings.append(
                f"series: line {line}: '{listed}' is not NNNN-kebab-subject.patch, nor "
                "../RELEASE/ and such a name"
            )
            continue
        number = found[2][:4]
        if number == last:
            findings.append(f"series: line {line}: number {number} is used twice")
        elif number < last:
            findings.append(f"series: line {line}: {number} comes after {last}")
        last = number
    for file in sorted(os.listdir(folder), key=os.fsencode):
        if file not in (*seen, *BESIDE):
            findings.append(f"{file}: is on disk, but the series does not list it")
    return seen


def _check_shared(folder: Path, patches: list[Patch], findings: list[str]) -> None:
    """A patch that is the same for two releases exists once: in the folder of the first."""
    for patch in patches:
        for other in sorted(folder.parent.glob(f"*/{patch.name}")):
            lender = other.parent.name
            same = not patch.lender and lender < folder.name and other.read_bytes() == patch.data
            if same:
                findings.append(
                    f"{patch.name}: is the same as ../{lender}/{patch.name}: list that, and remove "
                    "this one"
                )


def _check_lock(folder: Path, patches: list[Patch], findings: list[str]) -> None:
    try:
        lock = parse_lock((folder / "series.lock").read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        findings.append(f"series.lock: {problem}")
        return
    numbers = [patch.number for patch in patches]
    if list(lock) != numbers:
        findings.append(
            f"series.lock: has {' '.join(lock) or 'nothing'}, the series has "
            f"{' '.join(numbers) or 'nothing'}: run --refresh"
        )
    for patch in patches:
        row = lock.get(patch.number)
        if row and row.sha256 != patch.sha256:
            findings.append(
                f"{patch.name}: sha256 is {patch.sha256}, series.lock has {row.sha256}: restore "
                "the patch, or run --refresh"
            )


def _check_header(content: PatchFile, project: Path, earlier: list[str] | None) -> list[str]:
    found = _HEADER.fullmatch(content.header)
    if not found:
        return [
            "the header is not in git format-patch form (From 0..0, From:, Date:, "
            "Subject: [PATCH], blank line, message, ---)"
        ]
    try:
        message = found["message"].decode("utf-8")
    except UnicodeDecodeError:
        return ["the header is not UTF-8"]
    body, trailers = split_trailers(message)
    findings = []
    if not body.strip() or TODO in body:
        findings.append("the message does not say why the patch is needed")
    findings += [
        f"trailer '{key}:' is missing" for key in _REQUIRED if not any(trailers.get(key, []))
    ]
    for number in trailer_words(trailers, "Depends"):
        if number != "none" and earlier is not None and number not in earlier:
            findings.append(f"Depends: '{number}' is neither an earlier patch nor 'none'")
    for path in trailer_words(trailers, "Test"):
        if not (project / path.split("::")[0]).exists():
            findings.append(f"Test: {path} does not exist")
    return findings


def _check_diff(content: PatchFile) -> list[str]:
    findings = [
        f"line {first}{f' to {last}' if last > first else ''}: neither header nor diff"
        for first, last in content.junk
    ]
    for section in content.sections:
        for path in {section.old_path, section.new_path}:
            if not path.startswith(f"{PREFIX}/") or ".." in path.split("/"):
                findings.append(f"touches {path}, which is not under {PREFIX}/")
        if section.renamed:
            findings.append(f"{section.new_path}: renames are written as delete and add: --refresh")
        if section.lines and not section.full_index:
            findings.append(f"{section.new_path}: the index line is missing or not full")
        findings += _check_added(section)
    return findings


def _check_added(section: Section) -> list[str]:
    """Added lines without trailing blanks and markers; CRLF only where the file has it already."""
    crlf = any(line.endswith(b"\r\n") for _, line in section.lines if line[:1] != b"+")
    findings = []
    for number, line in section.lines:
        if line[:1] != b"+":
            continue
        text = line[1:].removesuffix(b"\n")
        if crlf:
            text = text.removesuffix(b"\r")
        if text.endswith(b"\r"):
            findings.append(f"line {number}: adds a carriage return")
        elif text != text.rstrip():
            findings.append(f"line {number}: adds trailing whitespace")
        if text.startswith(_MARKERS):
            findings.append(f"line {number}: adds a conflict marker")
    return findings


def _check_chain(content: PatchFile, left: dict) -> list[str]:
    """Each patch must start from what the earlier ones left; `left` is updated."""
    findings = []
    for change in content.changes():
        before = left.get(change.path, change.old)
        if not same_state(before, change.old):
            have = before.blob if before else ABSENT_BLOB
            want = change.old.blob if change.old else ABSENT_BLOB
            findings.append(
                f"expects {change.path} at {want}, but the patches before it leave {have}"
            )
        left[change.path] = change.new
    return findings
