# SPDX-License-Identifier: Apache-2.0
"""`make demo` and `make serve`: the patched SGLang on a CPU, seen from outside."""
