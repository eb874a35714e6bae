# SPDX-License-Identifier: Apache-2.0
"""`python -m gpucheck`, for scripts/gpu_check.sh."""

from .cli import main

main()
