# SPDX-License-Identifier: Apache-2.0
"""Write gpu-check.json and gpu-check.md: both or neither, and each in one piece."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from patchset.series import write_all

from .markdown import as_markdown
from .states import Outcome, count, exit_code

# Rises when a reader of the JSON would have to change.
SCHEMA = 1
JSON, MARKDOWN = "gpu-check.json", "gpu-check.md"


@dataclass
class Report:
    """What is known so far; written after every check, so that a run that dies leaves it.

    Attributes:
        checks: title of every check of this run, by name, in order.
        interrupted: whether somebody stopped the run.
    """

    folder: Path
    started: str
    machine: dict[str, Any]
    series: dict[str, Any]
    arguments: dict[str, Any]
    checks: dict[str, str]
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    interrupted: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "started": self.started,
            "interrupted": self.interrupted,
            "complete": set(self.outcomes) == set(self.checks),
            "machine": self.machine,
            "series": self.series,
            "arguments": self.arguments,
            "summary": count(self.outcomes) | {"exit_code": exit_code(self.outcomes)},
            "checks": {
                name: {
                    "title": self.checks[name],
                    "state": outcome.state.value,
                    "summary": outcome.summary,
                    "seconds": round(outcome.seconds, 1),
                    "details": outcome.details,
                    "figures": outcome.figures,
                }
                for name, outcome in self.outcomes.items()
            },
        }

    def write(self) -> list[Path]:
        """Replace both files.

        Raises:
            OSError: the folder cannot be written.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        found = self.as_json()
        text = json.dumps(found, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        files = {self.folder / JSON: text, self.folder / MARKDOWN: as_markdown(found)}
        write_all({path: text.encode() for path, text in files.items()})
        return list(files)
