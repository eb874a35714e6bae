#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What the build stage of Dockerfile runs, in a folder that is laid out as a checkout:
#
#   scripts/container/install.sh packages PROFILE RELEASE        .venv, from requirements/
#   scripts/container/install.sh series PROFILE RELEASE [ID]     sglang/RELEASE, patched
#
# PROFILE is cu128 or cpu. ID is what the image's label says of the series; another one than
# patches/RELEASE has ends the build.
#
# SGLang is unpacked and patched beside the environment and not inside it, as scripts/bootstrap.sh
# does it: then the tool compares the whole tree with the id in upstream.toml and not only the files
# that a patch touches, the packages' layer outlives a new series, and both profiles serve the very
# layout that the tests run.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
WHAT=${1:?packages or series} PROFILE=${2:?cu128 or cpu} RELEASE=${3:?release} ID=${4-}
VENV=$ROOT/.venv
LOG=$VENV/install.log
STEPS=2

# shellcheck source=scripts/cpu_profile/progress.sh
source "$ROOT/scripts/cpu_profile/progress.sh"
# shellcheck source=scripts/cpu_profile/preflight.sh
source "$ROOT/scripts/cpu_profile/preflight.sh"
say() { printf 'install: %s\n' "$*"; }
fail() { # CODE MESSAGE
    printf 'install: %s\n' "$2" >&2
    exit "$1"
}
[[ $PROFILE == cu128 || $PROFILE == cpu ]] ||
    fail 2 "PROFILE: expected cu128 or cpu, found '$PROFILE'; change --build-arg PROFILE"
[[ -f $ROOT/requirements/cpu-$RELEASE.in ]] ||
    fail 2 "RELEASE: expected one that requirements/ has files for, found '$RELEASE'; change --build-arg RELEASE"
# shellcheck source=scripts/cpu_profile/venv.sh
source "$ROOT/scripts/cpu_profile/venv.sh"

packages() {
    local lock=$ROOT/requirements/cu128-$RELEASE.lock
    if [[ $PROFILE == cu128 ]]; then
        [[ -f $lock ]] ||
            fail 2 "packages: expected requirements/${lock##*/}, found none; choose another RELEASE or PROFILE"
        [[ $(python_version python3) == 3.12.* ]] ||
            fail 2 "Python: expected 3.12, which ${lock##*/} is for, found $(python_version python3); use another BASE_IMAGE"
    fi
    BASE_PYTHON=python3
    make_venv
    if [[ $PROFILE == cu128 ]]; then
        install_packages -r "$lock"
        TORCH_BUILD=cuda
    else
        choose_torch
        install_packages -r "$CPU_TXT" -r "$(torch_txt "$TORCH_BUILD")"
    fi
    link_sources
    say "compiling the packages"
    # Some packages ship files that are no Python 3; nobody imports them.
    "$VENV_PYTHON" -m compileall -qq -j 0 "$VENV/lib" || true
    rm -rf "$VENV/tmp" "$LOG"
}

series() {
    local found
    found=$(cd "$ROOT/scripts" && python3 -m container.series_id "$RELEASE")
    [[ -z $ID || $ID == "$found" ]] ||
        fail 2 "SERIES_ID: expected $found, the id of patches/$RELEASE, found '$ID'; leave the build argument to 'make image'"
    "$VENV_PYTHON" -m patchset.materialise --release "$RELEASE"
    "$ROOT/scripts/apply_patches.sh" --release "$RELEASE"
    # Fails unless every file of the tree is as the series leaves it.
    "$ROOT/scripts/apply_patches.sh" --release "$RELEASE" --status --json >"$ROOT/series.json"
    # A checkout keeps the modes of whoever made it, and the image serves under any user.
    chmod -R a+rX "$ROOT/models" "$ROOT/scripts" "$ROOT/sglang" "$ROOT/series.json"
    say "compiling sglang"
    "$VENV_PYTHON" -m compileall -q -j 0 "$ROOT/sglang/$RELEASE/python" "$ROOT/scripts/container" \
        "$ROOT/scripts/cpu_profile"
}

case $WHAT in
    packages) packages ;;
    series) series ;;
    *) fail 2 "expected packages or series, found '$WHAT'" ;;
esac
