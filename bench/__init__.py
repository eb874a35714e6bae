# SPDX-License-Identifier: Apache-2.0
"""Measurements: one script a question."""
