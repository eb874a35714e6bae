# SPDX-License-Identifier: Apache-2.0
"""Apply, check, and maintain an ordered series of git patches on a pinned upstream release."""
