# SPDX-License-Identifier: Apache-2.0
"""Puts the probe into every process of an engine under test.

SGLang's scheduler is a fresh interpreter that tests cannot reach. With this directory on
PYTHONPATH, Python imports this file at start-up; with SGLANG_DDTREE_PROBE set, it patches two
modules of SGLang as soon as they have been imported. Production code has no test hooks.
"""

import os

if os.environ.get("SGLANG_DDTREE_PROBE"):
    import engine_probe

    engine_probe.install()
