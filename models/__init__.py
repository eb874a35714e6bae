# SPDX-License-Identifier: Apache-2.0
"""The tiny model pair and everything that made it."""
