#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prove every patch by itself: at each level of the series the tree compiles, uses no undefined
# name, and passes the unit tests of all patches so far. Ends at the level it began with: all.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

PYTHON=.venv/bin/python
RELEASE=${1:-0.5.11}
SERIES=patches/$RELEASE

restore() { scripts/apply_patches.sh --release "$RELEASE" --quiet; }
trap restore EXIT

mapfile -t names < <(grep -vE '^(#|$)' "$SERIES/series")
applied=0 tested=0
patches=() tests=()
for name in "${names[@]}"; do
    number=${name%%-*}
    scripts/apply_patches.sh --release "$RELEASE" --to "$number" --quiet
    applied=$((applied + 1))

    patches+=("$SERIES/$name")
    mapfile -t files < <(git apply --numstat -z "${patches[@]}" | tr '\0' '\n' | cut -f3 |
        grep '\.py$' | sort -u | sed "s|^|sglang/$RELEASE/|")
    "$PYTHON" -m compileall -q "${files[@]}"
    .venv/bin/ruff check --quiet --isolated --no-cache --target-version py310 --select F821 \
        --ignore-noqa "${files[@]}"

    own=(tests/patches/test_"$number"_*.py)
    [[ -e ${own[0]} ]] || {
        echo "per patch: expected tests/patches/test_${number}_*.py, found none; write one" >&2
        exit 1
    }
    tests+=("${own[@]}")
    printf 'per patch: at %s, %d test files\n' "$name" "${#tests[@]}"
    "$PYTHON" -m pytest -q -W ignore "${tests[@]}"
    tested=$((tested + 1))
done
scripts/apply_patches.sh --release "$RELEASE" --reverse --quiet
printf 'per patch: %d listed, %d applied, %d tested, reversed to the base tree\n' \
    "${#names[@]}" "$applied" "$tested"
