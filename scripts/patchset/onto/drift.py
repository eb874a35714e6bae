# SPDX-License-Identifier: Apache-2.0
"""What git cannot see: names that are gone, and functions that take other arguments now."""

from __future__ import annotations

from dataclasses import dataclass

from .sources import Sources
from .symbols import Module, dotted_path, importable, used


@dataclass(frozen=True)
class Drift:
    """Looks at what a patch takes from upstream.

    old, new: upstream's files in the release that the series was written for, and in the other.
    own: names that the series itself defines.
    """

    old: Sources
    new: Sources
    own: frozenset[str]

    def of(
        self, after: Sources, here: Sources, result: Sources, added: dict[str, set[int]]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """(names that are gone, calls to look at) of one patch.

        after: its level on the release that it was written for. here, result: the other release
        before and after it. added: the lines (from 1) that it adds there, by path.
        """
        gone: set[str] = set()
        look: set[str] = set()
        attributes: dict[str, set[str]] = {}
        for path, lines in added.items():
            if not lines or not path.endswith(".py"):
                continue
            module = result.module(path)
            if module is None:
                look.add(f"{path} is no Python that can be read here, so none of it was checked")
                continue
            uses = used(module, path, lines)
            attributes[path] = uses.attributes
            for dotted, name in uses.imports:
                if not importable(result, dotted, name) and importable(after, dotted, name):
                    gone.add(f"{path} imports `{name}` from `{dotted}`, which has no such name")
            gone |= {
                f"{path} uses `{name}`, which nothing defines there"
                for name in self._undefined(path, module, after, here)
            }
            look |= self._changed_calls(path, module, uses.calls)
        lost = self._lost(set().union(*attributes.values()))
        gone |= {
            f"{path} uses `.{name}`, which no file has any more"
            for path, names in attributes.items()
            for name in names & lost
        }
        return tuple(sorted(gone)), tuple(sorted(look))

    def _undefined(self, path: str, module: Module, after: Sources, here: Sources) -> set[str]:
        written = after.module(path)
        if written is module:
            return set()
        before = here.module(path)
        known = before.undefined if before else set()
        # A name of the series itself comes with a hunk that did not fit, and is reported there.
        return module.undefined - known - (written.undefined if written else set()) - self.own

    def _lost(self, names: set[str]) -> set[str]:
        names = names - self.own
        return {n for n in names if not self.new.has_word(n) and self.old.has_word(n)}

    def _changed_calls(self, path: str, module: Module, calls: set[str]) -> set[str]:
        """Upstream functions that the file calls, and whose parameters are others now.

        They are looked for by name, in the file itself and in the modules that it imports from.
        """
        found = set()
        for dotted in {dotted_path(path), *module.imported_from(path)}:
            old_path, new_path = self.old.path_of(dotted), self.new.path_of(dotted)
            if old_path is None or new_path is None:
                continue
            if self.old.entries[old_path] == self.new.entries[new_path]:
                continue
            # Parsing is slow: only the modules that define one of the names.
            text = self.old.read(old_path)
            names = [name for name in calls if f"def {name}(".encode() in text]
            if not names:
                continue
            old, new = self.old.module(old_path), self.new.module(new_path)
            if old is None or new is None:
                continue
            for name in names:
                before, now = old.definitions(name), new.definitions(name)
                if before and now and before != now:
                    found.add(
                        f"{path} calls `{name}` of `{dotted}`, which takes other arguments now"
                    )
        return found
