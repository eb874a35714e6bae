#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Check Python, shell scripts, Dockerfile, the series, and the names in patched upstream files.
# Every check runs, also after one has failed. Exit code: 0 clean, 1 findings, 2 no tools.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

RUFF=.venv/bin/ruff
SHELLCHECK=.venv/bin/shellcheck
HADOLINT=.venv/bin/hadolint
FAILED=0

check() { # TITLE COMMAND...
    printf 'lint: %s\n' "$1"
    shift
    "$@" </dev/null || FAILED=1
}

shell_scripts() {
    find . \( -path ./.git -o -path './.venv*' -o -path './sglang/*' -o -path ./build \) -prune -o \
        -type f \( -name '*.sh' -o -path ./.ci/run \) -print
}

# Only a release that has been bootstrapped is unpacked; this takes its wheel, and no packages.
unpack_if_missing() { # RELEASE
    [[ ! -d sglang/$1 ]] || return 0
    .venv/bin/python -m patchset.materialise --release "$1" &&
        scripts/apply_patches.sh --release "$1"
}

# Python files that some patch changes or adds, from the patches themselves.
patched_files() { # RELEASE
    local patches
    mapfile -t patches < <(sed -nE "s|^[^#]+$|patches/$1/&|p" "patches/$1/series")
    git apply --numstat -z "${patches[@]}" | tr '\0' '\n' | cut -f3 | grep '\.py$' |
        sort -u | sed "s|^|sglang/$1/|"
}

# A name that is used and never imported stops a server in the middle of a request.
undefined_names() { # RELEASE
    local list file files
    list=$(patched_files "$1") || return 1
    mapfile -t files <<<"$list"
    for file in "${files[@]}"; do # ruff passes over a missing file in silence
        [[ -f $file ]] || {
            echo "lint: expected $file, which a patch names, found none; run scripts/apply_patches.sh" >&2
            return 1
        }
    done
    "$RUFF" check --quiet --output-format concise --isolated --no-cache --target-version py310 \
        --select F821 --ignore-noqa "${files[@]}"
}

for tool in "$RUFF" "$SHELLCHECK" "$HADOLINT"; do
    [[ -x $tool ]] || {
        echo "lint: expected $tool, found none; run 'make lint' or scripts/bootstrap.sh" >&2
        exit 2
    }
done

check "ruff check" "$RUFF" check --quiet --output-format concise .
check "ruff format" "$RUFF" format --quiet --check .
mapfile -t scripts < <(shell_scripts)
check "shellcheck (${#scripts[@]} files)" "$SHELLCHECK" --external-sources "${scripts[@]}"
check "hadolint" "$HADOLINT" Dockerfile
for folder in patches/*/; do
    release=$(basename "$folder")
    check "series of $release" scripts/apply_patches.sh --release "$release" --lint --quiet
    echo "lint: undefined names in the patched files of $release"
    { unpack_if_missing "$release" && undefined_names "$release"; } || FAILED=1
done
exit "$FAILED"
