# SPDX-License-Identifier: Apache-2.0
"""Seeded synthetic text: the only data that the tiny model pair has seen."""

from models.text.generate import KINDS, document, is_held_out

__all__ = ["KINDS", "document", "is_held_out"]
