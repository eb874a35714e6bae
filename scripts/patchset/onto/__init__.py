# SPDX-License-Identifier: Apache-2.0
"""A series on another upstream release: what still applies (report), and how to carry it (port)."""
