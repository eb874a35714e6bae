# SPDX-License-Identifier: Apache-2.0
"""The CPU profile: how SGLang runs on a machine without a GPU."""
