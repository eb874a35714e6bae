# SPDX-License-Identifier: Apache-2.0
"""Slow, obvious answers that the tests compare the patched code with.

Written from the definitions, in plain Python on lists of numbers, and importing neither
SGLang nor torch: nothing here can share a bug with what it judges.
"""
