# SPDX-License-Identifier: Apache-2.0
"""A strict reader for patch files: header, then sections of a git diff with counted hunks.

git itself skips over what it does not understand. This reader does not, so that a damaged patch
is refused instead of being applied in part.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from .git import ABSENT_BLOB, Change, Entry

SEPARATOR = b"---\n"

_HUNK = re.compile(rb"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_INDEX = re.compile(rb"^index ([0-9a-f]+)\.\.([0-9a-f]+)(?: (\d{6}))?$")
_ESCAPED = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_TRAILER = re.compile(r"([A-Z][A-Za-z-]*): *(.*)")
_SIGNATURE = b"-- \n"
_GIT_VERSION = re.compile(rb"\d+(\.\w+)+( \([^\n]*\))?\n")
_ESCAPES = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}


class PatchFormatError(Exception):
    """The file is not a well-formed patch. The message starts with the line number."""


@dataclass(frozen=True)
class Hunk:
    """One `@@` block.

    line: number of its `@@` line in the patch file.
    old_start, new_start: its first line before and after the patch, from 1; the line after which it
        stands when it has no line on that side.
    lines: the body, each line as it is in the patch file: ' ', '+', or '-', then the content with
        its newline, which the last line of a file can lack.
    """

    line: int
    old_start: int
    new_start: int
    lines: tuple[bytes, ...]

    @property
    def old(self) -> list[bytes]:
        return [line[1:] for line in self.lines if line[:1] != b"+"]

    @property
    def new(self) -> list[bytes]:
        return [line[1:] for line in self.lines if line[:1] != b"-"]

    @property
    def old_index(self) -> int:
        """Where `old` begins in the list of the file's lines, from 0."""
        return self.old_start - 1 if self.old else self.old_start

    def numbered(self, sign: bytes) -> list[tuple[int, bytes]]:
        """(line number in the file, content) of the added (`+`) or the removed (`-`) lines."""
        number = self.new_start if sign == b"+" else self.old_start
        found = []
        for line in self.lines:
            if line[:1] == sign:
                found.append((number, line[1:]))
            number += line[:1] in (b" ", sign)
        return found


@dataclass
class Section:
    """What a patch does to one file."""

    old_path: str
    new_path: str
    old: Entry | None
    new: Entry | None
    full_index: bool = False
    renamed: bool = False
    hunks: list[Hunk] = field(default_factory=list)
    lines: list[tuple[int, bytes]] = field(default_factory=list)
    """The bodies of all hunks: (line number in the patch file, line as it stands there)."""

    def changes(self) -> list[Change]:
        if self.old_path == self.new_path:
            return [Change(self.new_path, self.old, self.new)]
        return [Change(self.old_path, self.old, None), Change(self.new_path, None, self.new)]


@dataclass
class PatchFile:
    header: bytes
    """Everything up to and including the `---` line."""
    diff: bytes
    """From the first `diff --git` line to the end of the last hunk."""
    sections: list[Section]
    junk: list[tuple[int, int]]
    """First and last number of each run of lines that are neither header nor diff (diffstat,
    signature)."""

    def changes(self) -> list[Change]:
        """The declared effect on each path, in path order."""
        found = [change for section in self.sections for change in section.changes()]
        return sorted(found, key=lambda change: change.path)


def split_header(data: bytes) -> tuple[bytes, bytes]:
    """(header with its `---` line, rest). Raises PatchFormatError when there is no such line."""
    position = 0 if data.startswith(SEPARATOR) else data.find(b"\n" + SEPARATOR) + 1
    if position == 0:
        hint = "has CRLF line ends" if b"\r\n" in data[:4096] else "has no '---' line"
        raise PatchFormatError(f"line 1: the patch {hint}")
    end = position + len(SEPARATOR)
    return data[:end], data[end:]


def split_trailers(message: str) -> tuple[str, dict[str, list[str]]]:
    """(text, values of the `Key: value` lines in the last paragraph, by key)."""
    body, _, last = message.strip("\n").rpartition("\n\n")
    trailers: dict[str, list[str]] = {}
    for line in last.split("\n"):
        if row := _TRAILER.fullmatch(line):
            trailers.setdefault(row[1], []).append(row[2].strip())
    return body, trailers


def trailer_words(trailers: dict[str, list[str]], key: str) -> list[str]:
    """What the values of one key list, between commas and blanks."""
    return [word for value in trailers.get(key, []) for word in re.split(r"[\s,]+", value) if word]


def parse(data: bytes) -> PatchFile:
    """Read a patch file. Raises PatchFormatError on anything that git would skip or guess."""
    if not data.endswith(b"\n"):
        raise PatchFormatError(f"line {data.count(10) + 1}: the last line has no newline")
    header, rest = split_header(data)
    return _Parser(header, rest).parse()


def parse_diff(diff: bytes) -> list[Section]:
    """Read a diff without a header; an empty one has no sections."""
    return _Parser(b"", diff).parse().sections if diff else []


def added_lines(sections: Iterable[Section]) -> dict[str, set[int]]:
    """The numbers (from 1) of the lines that each file has gained, by path."""
    return {s.new_path: {n for hunk in s.hunks for n, _ in hunk.numbered(b"+")} for s in sections}


class _Parser:
    def __init__(self, header: bytes, rest: bytes):
        self._header = header
        # At newlines only: a lone carriage return is content.
        self._lines = [line + b"\n" for line in rest.split(b"\n")[:-1]]
        self._first = header.count(b"\n") + 1
        self._at = 0

    def parse(self) -> PatchFile:
        while self._at < len(self._lines) and not self._peek().startswith(b"diff --git "):
            self._at += 1
        start = self._at
        sections = []
        while self._at < len(self._lines) and self._peek().startswith(b"diff --git "):
            sections.append(self._section())
        if not sections:
            raise PatchFormatError(f"line {self._number()}: no 'diff --git' line")
        end = self._at
        self._skip_signature()
        runs = (self._run(0, start), self._run(end, len(self._lines)))
        junk = [run for run in runs if run is not None]
        return PatchFile(self._header, b"".join(self._lines[start:end]), sections, junk)

    def _skip_signature(self) -> None:
        """Nothing, or `-- `, git's version, and blank lines: git would skip any other text too."""
        if self._at == len(self._lines):
            return
        if self._peek() != _SIGNATURE:
            raise PatchFormatError(
                f"line {self._number()}: expected '@@', 'diff --git', or the end of the file "
                "(does the hunk header above count its lines right?)"
            )
        self._at += 1
        if self._at < len(self._lines) and _GIT_VERSION.fullmatch(self._peek()):
            self._at += 1
        while self._at < len(self._lines):
            if self._peek() != b"\n":
                raise PatchFormatError(
                    f"line {self._number()}: expected the end of the file after the signature: "
                    "remove what follows"
                )
            self._at += 1

    def _run(self, start: int, end: int) -> tuple[int, int] | None:
        """Numbers of the first and the last line of lines[start:end] that is not blank."""
        rows = [at for at in range(start, end) if self._lines[at] != b"\n"]
        return (self._first + rows[0], self._first + rows[-1]) if rows else None

    def _peek(self) -> bytes:
        return self._lines[self._at]

    def _number(self) -> int:
        return self._first + self._at

    def _take_meta(self) -> bytes:
        """The next line, which is not file content, so a carriage return is damage."""
        line = self._peek()
        if line.endswith(b"\r\n"):
            raise PatchFormatError(f"line {self._number()}: the patch has CRLF line ends")
        self._at += 1
        return line[:-1]

    def _section(self) -> Section:
        start = self._number()
        names = self._take_meta()[len(b"diff --git ") :]
        old_path = new_path = None
        old_mode = new_mode = old_blob = new_blob = ""
        created = deleted = renamed = full_index = False
        while self._at < len(self._lines):
            line = self._peek()
            if line.startswith((b"diff --git ", b"@@")) or line == _SIGNATURE:
                break
            number = self._number()
            meta = self._take_meta()
            if meta.startswith(b"old mode "):
                old_mode = meta[9:].decode()
            elif meta.startswith(b"new mode "):
                new_mode = meta[9:].decode()
            elif meta.startswith(b"new file mode "):
                created, new_mode = True, meta[14:].decode()
            elif meta.startswith(b"deleted file mode "):
                deleted, old_mode = True, meta[18:].decode()
            elif meta.startswith(b"rename from "):
                renamed, old_path = True, _unquote(meta[12:])
            elif meta.startswith(b"rename to "):
                new_path = _unquote(meta[10:])
            elif found := _INDEX.match(meta):
                full_index = len(found[1]) == len(found[2]) == len(ABSENT_BLOB)
                if full_index:
                    old_blob, new_blob = found[1].decode(), found[2].decode()
                if found[3]:
                    old_mode = new_mode = found[3].decode()
            elif meta.startswith(b"--- "):
                old_path = _file_line(meta[4:], b"a/") or old_path
            elif meta.startswith(b"+++ "):
                new_path = _file_line(meta[4:], b"b/") or new_path
            elif not meta.startswith((b"similarity index ", b"dissimilarity index ")):
                what = "a binary change" if b"inary" in meta else "an unknown line"
                raise PatchFormatError(f"line {number}: {what}")
        if renamed:
            if old_path is None or new_path is None:
                raise PatchFormatError(f"line {start}: a rename without both names")
        else:
            path = _common_name(names)
            if path is None or not {old_path, new_path} <= {path, None}:
                raise PatchFormatError(f"line {start}: the section gives different file names")
            old_path = new_path = path
        section = Section(
            old_path,
            new_path,
            None if created else Entry(old_mode, old_blob),
            None if deleted else Entry(new_mode, new_blob),
            full_index,
            renamed,
        )
        while self._at < len(self._lines) and self._peek().startswith(b"@@"):
            self._hunk(section)
        return section

    def _hunk(self, section: Section) -> None:
        start = self._number()
        found = _HUNK.match(self._take_meta())
        if not found:
            raise PatchFormatError(f"line {start}: not a hunk header")
        old_left = int(found[2] or 1)
        new_left = int(found[4] or 1)
        body: list[bytes] = []
        while old_left > 0 or new_left > 0:
            line = self._peek() if self._at < len(self._lines) else b""
            kind = line[:1]
            if kind not in (b" ", b"+", b"-", b"\\"):
                raise PatchFormatError(f"line {start}: the hunk is shorter than its header says")
            old_left -= kind in (b" ", b"-")
            new_left -= kind in (b" ", b"+")
            if kind == b"\\":
                body[-1:] = [line.removesuffix(b"\n") for line in body[-1:]]
            else:
                section.lines.append((self._number(), line))
                body.append(line)
            self._at += 1
        if old_left < 0 or new_left < 0:
            raise PatchFormatError(f"line {start}: the hunk's line counts are wrong")
        if self._at < len(self._lines) and self._peek().startswith(b"\\"):
            body[-1:] = [line.removesuffix(b"\n") for line in body[-1:]]
            self._at += 1
        section.hunks.append(Hunk(start, int(found[1]), int(found[3]), tuple(body)))


def _file_line(name: bytes, prefix: bytes) -> str | None:
    """The path of a `---` or `+++` line, or None for /dev/null."""
    if name == b"/dev/null":
        return None
    # git ends a name that holds a space with a tab.
    path = name[:-1] if name.endswith(b"\t") else name
    return _without_prefix(_unquote(path), prefix.decode())


def _common_name(names: bytes) -> str | None:
    """The path of a `diff --git a/X b/X` line whose two names are equal."""
    half = (len(names) - 1) // 2
    first, second = _unquote(names[:half]), _unquote(names[half + 1 :])
    if first[:2] == "a/" and second[:2] == "b/" and first[2:] == second[2:]:
        return first[2:]
    return None


def _without_prefix(path: str, prefix: str) -> str:
    return path[len(prefix) :] if path.startswith(prefix) else path


def _unquote(name: bytes) -> str:
    """Undo git's C-style quoting."""
    if len(name) >= 2 and name.startswith(b'"') and name.endswith(b'"'):
        name = _ESCAPED.sub(_unescape, name[1:-1])
    return os.fsdecode(name)


def _unescape(found: re.Match[bytes]) -> bytes:
    code = found[1].decode()
    return bytes([int(code, 8) if code[0].isdigit() else _ESCAPES[code]])
