#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# Find a Python and run scripts/patchset with it. All options: apply_patches.sh --help
set -eu

scripts=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)

for python in python3 python3.13 python3.12 python3.11 python3.10 "$scripts"/../.venv*/bin/python; do
    if "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; then
        # -I: nothing of the caller's Python settings; utf8: file names in any locale.
        exec "$python" -I -X utf8 -c '
import sys
sys.path.insert(0, sys.argv.pop(1))
from patchset.cli import main
sys.exit(main())' "$scripts" "$@"
    fi
done

echo "apply_patches.sh: expected Python 3.10 or newer on PATH, found none: install python3" >&2
exit 2
