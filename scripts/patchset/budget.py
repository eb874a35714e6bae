# SPDX-License-Identifier: Apache-2.0
"""What each patch costs whoever carries the series to the next release."""

from __future__ import annotations

from dataclasses import dataclass

from .series import Series


@dataclass(frozen=True)
class Budget:
    """Added and removed lines of a patch, by whose files they are in.

    upstream_lines: in upstream's own files, `upstream_files` of them, each of which can conflict
    with the next release. new_lines: in files that the series adds, which cannot.
    """

    upstream_lines: int
    upstream_files: int
    new_lines: int

    def __str__(self) -> str:
        files = "file," if self.upstream_files == 1 else "files,"
        return (
            f"{self.upstream_lines:>4} lines in {self.upstream_files:>2} upstream {files:<6} "
            f"{self.new_lines:>5} in new files"
        )


def budgets(series: Series) -> list[Budget]:
    """One for each patch, and last that of the whole series."""
    added: set[str] = set()
    touched: set[str] = set()
    found = []
    for patch in series.patches:
        upstream_lines = new_lines = 0
        files = set()
        for section in patch.content.sections:
            path = section.new_path
            if section.old is None:
                added.add(path)
            changed = sum(line[:1] != b" " for _, line in section.lines)
            if path in added:
                new_lines += changed
            else:
                upstream_lines += changed
                files.add(path)
        touched |= files
        found.append(Budget(upstream_lines, len(files), new_lines))
    lines = sum(one.upstream_lines for one in found)
    return [*found, Budget(lines, len(touched), sum(one.new_lines for one in found))]
