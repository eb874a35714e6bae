#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What upstream.toml says about releases, for the scripts, the Makefile and CI:
#
#   scripts/releases.sh              every release, one a line
#   scripts/releases.sh default      the default one
#   scripts/releases.sh others       every other one
#   scripts/releases.sh venv R       the virtual environment of release R, at the repository's root
#
# Exit codes: 0; 2 for wrong usage, a release that is not there, or no upstream.toml.
set -euo pipefail

UPSTREAM=$(dirname "${BASH_SOURCE[0]}")/../upstream.toml

fail() {
    printf '%s\n' "$1" >&2
    exit 2
}

releases() { sed -nE 's/^\[release\."([^"]+)"\]$/\1/p' "$UPSTREAM"; }

default() { sed -nE 's/^default = "([^"]+)"$/\1/p' "$UPSTREAM"; }

known() { # RELEASE
    local all
    all=$(releases)
    grep -qxF -- "$1" <<<"$all" ||
        fail "RELEASE: expected one of ${all//$'\n'/, }, found '$1'; name one of them"
}

[[ -f $UPSTREAM ]] || fail "upstream.toml: expected it beside scripts/, found none; restore it from git"
case ${1-} in
    '') releases ;;
    default) default ;;
    others) releases | grep -vxF -- "$(default)" || true ;;
    venv)
        known "${2-}"
        [[ $2 == "$(default)" ]] && echo .venv || echo ".venv-$2"
        ;;
    *) fail "releases.sh: expected default, others, venv RELEASE or nothing, found '$1'; name one" ;;
esac
