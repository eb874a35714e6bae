# SPDX-License-Identifier: Apache-2.0
"""Whether the calls in a series' lines fit the signatures of SGLang and of sgl-kernel.

Nothing is imported from either: the sources are parsed, and what only a wheel has is in facts/.
"""
