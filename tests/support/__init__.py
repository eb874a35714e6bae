# SPDX-License-Identifier: Apache-2.0
"""Shared harness of the tests: engines in a process of their own, probes, references."""
