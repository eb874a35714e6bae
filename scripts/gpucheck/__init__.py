# SPDX-License-Identifier: Apache-2.0
"""`scripts/gpu_check.sh`: what only a machine with a GPU can say about the series, in one report.

On a machine without one it does what a CPU can, and says of the rest that it was not run.
"""
