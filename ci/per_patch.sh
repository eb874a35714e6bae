#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prove every patch of a release by itself, see ci/per_patch.py: ci/per_patch.sh [RELEASE]
# Ends at the level that it began with: all patches applied.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ ${1-} == -h || ${1-} == --help ]]; then
    sed -n '3,4s/^# //p' ci/per_patch.sh
    exit
fi
RELEASE=${1:-$(scripts/releases.sh default)}
VENV=$(scripts/releases.sh venv "$RELEASE")
[[ -x $VENV/bin/python ]] || {
    echo "per patch: expected the environment $VENV, found none; run scripts/bootstrap.sh --release $RELEASE" >&2
    exit 2
}

restore() { scripts/apply_patches.sh --release "$RELEASE" --quiet; }
trap restore EXIT
"$VENV/bin/python" ci/per_patch.py "$RELEASE" </dev/null
