# SPDX-License-Identifier: Apache-2.0
"""The files of a tree, each read and parsed once however many trees hold it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cached_property

from ..git import Entry, Git
from ..root import PREFIX
from ..upstream import PACKAGE
from .symbols import Module

_WORD = re.compile(rb"\w")


class Library:
    """What blobs hold. Every `Sources` of a report shares one."""

    def __init__(self, git: Git):
        self.git = git
        self._contents: dict[str, bytes] = {}
        self._modules: dict[str, Module | None] = {}

    def fetch(self, blobs: Iterable[str]) -> None:
        """Read these blobs with one call of git."""
        wanted = set(blobs) - self._contents.keys()
        if wanted:
            self._contents.update(self.git.blobs(wanted))

    def content(self, blob: str) -> bytes:
        self.fetch([blob])
        return self._contents[blob]

    def module(self, blob: str) -> Module | None:
        if blob not in self._modules:
            try:
                self._modules[blob] = Module(self.content(blob))
            except (SyntaxError, ValueError):
                self._modules[blob] = None
        return self._modules[blob]


class Sources:
    """The files of `tree`.

    beneath: where to look for the files that are not in `scope`, the paths that `tree` is about.
    Such a tree is small, and all of its files are fetched at once.
    """

    def __init__(
        self,
        library: Library,
        tree: str,
        beneath: Sources | None = None,
        scope: frozenset[str] = frozenset(),
    ):
        self.tree = tree
        self._library = library
        self._beneath = beneath
        self._scope = scope

    @cached_property
    def entries(self) -> dict[str, Entry]:
        """Those of `tree`."""
        entries = self._library.git.entries(self.tree)
        if self._beneath is not None:
            self._library.fetch(entry.blob for entry in entries.values())
        return entries

    def read(self, path: str) -> bytes | None:
        entry = self._entry(path)
        return None if entry is None else self._library.content(entry.blob)

    def module(self, path: str) -> Module | None:
        """None when there is no such file, or it is not Python that can be read here."""
        entry = self._entry(path) if path.endswith(".py") else None
        return None if entry is None else self._library.module(entry.blob)

    def path_of(self, dotted: str) -> str | None:
        """The file of a module of the package, or None."""
        stem = "/".join([PREFIX, *dotted.split(".")])
        return next((p for p in (f"{stem}.py", f"{stem}/__init__.py") if self._entry(p)), None)

    def has_folder(self, dotted: str) -> bool:
        return self.has_path("/".join([PREFIX, *dotted.split(".")]))

    def has_path(self, folder: str) -> bool:
        return folder in self._folders or bool(self._beneath and self._beneath.has_path(folder))

    def has_word(self, name: str) -> bool:
        """Whether an identifier occurs anywhere in the package's Python files of `tree`."""
        word, at = name.encode(), self._text.find(name.encode())
        while at >= 0:
            end = at + len(word)
            if not _WORD.match(self._text, at - 1) and not _WORD.match(self._text, end):
                return True
            at = self._text.find(word, end)
        return False

    def _entry(self, path: str) -> Entry | None:
        if self._beneath is not None and path not in self._scope:
            return self._beneath._entry(path)
        return self.entries.get(path)

    @cached_property
    def _folders(self) -> set[str]:
        return {path.rsplit("/", n)[0] for path in self.entries for n in range(1, path.count("/"))}

    @cached_property
    def _text(self) -> bytes:
        """All Python of the package, between two newlines. Most words occur early in it, so
        that looking for one at a time is faster than a pattern of all."""
        start = f"{PREFIX}/{PACKAGE}/"
        blobs = [
            entry.blob
            for path, entry in self.entries.items()
            if path.startswith(start) and path.endswith(".py")
        ]
        self._library.fetch(blobs)
        return b"\n".join([b"", *(self._library.content(blob) for blob in blobs), b""])
