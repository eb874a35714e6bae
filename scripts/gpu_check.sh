#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Find a Python that has the patched SGLang and run scripts/gpucheck with it. All options:
# gpu_check.sh --help. The Python is that of --python, else the one that `make bootstrap` makes
# for --release. Where it has no SGLang, as an environment of requirements/cu128-*.lock has none,
# it gets the unpacked one of this repository.
set -euo pipefail

SCRIPTS=$(CDPATH='' cd -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd -P)
ROOT=${SCRIPTS%/*}
PYTHON=
RELEASE=
ARGUMENTS=()

fail() { # MESSAGE
    printf 'gpu_check.sh: %s\n' "$1" >&2
    exit 2
}

while (($#)); do
    case $1 in
        --python | --release)
            (($# > 1)) || fail "$1: expected a value, found nothing; see --help"
            if [[ $1 == --python ]]; then PYTHON=$2; else RELEASE=$2; fi
            shift
            ;;
        --python=*) PYTHON=${1#*=} ;;
        --release=*) RELEASE=${1#*=} ;;
        --)
            ARGUMENTS+=("$@")
            break
            ;;
        *) ARGUMENTS+=("$1") ;;
    esac
    shift
done

RELEASE=${RELEASE:-$("$SCRIPTS/releases.sh" default)}
VENV=$("$SCRIPTS/releases.sh" venv "$RELEASE") || exit 2
PYTHON=${PYTHON:-$ROOT/$VENV/bin/python}
# Absolute, because it is also called from another folder; a bare name is for PATH.
[[ $PYTHON != */* || $PYTHON == /* ]] || PYTHON=$PWD/$PYTHON
"$PYTHON" -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null ||
    fail "expected Python 3.10 or newer, found none that runs as $PYTHON; run make bootstrap, or pass --python"

export PYTHONPATH=$SCRIPTS${PYTHONPATH:+:$PYTHONPATH}
has_sglang() { (cd / && "$PYTHON" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("sglang") is None)'); }
TREE=$ROOT/sglang/$RELEASE/python
if ! has_sglang && [[ -d $TREE ]]; then
    export PYTHONPATH=$PYTHONPATH:$TREE
fi

exec "$PYTHON" -m gpucheck ${ARGUMENTS[@]+"${ARGUMENTS[@]}"}
