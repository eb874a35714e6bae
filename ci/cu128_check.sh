#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Install the CUDA 12.8 lock and load what it can on a machine without a card: see usage() below.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Measured: the environment 11 GB, the wheels beside it while they are unpacked 5 GB.
DISK_MB=17000
FOLDER=build/cu128
VENV=$FOLDER/venv
STUB=$FOLDER/stub

usage() {
    cat <<TEXT
usage: ci/cu128_check.sh [RELEASE]

Makes $VENV with Python 3.12, installs requirements/cu128-RELEASE.lock with --require-hashes
(5 GB to download), loads each library of sgl_kernel beside a libcuda.so.1 whose every function
fails, imports the patched worker as on compute capability 10.0 and 12.0, compares every signature
that the series calls with the real one, and runs tests/patches on the CPU with the lock's torch.
No kernel is run. Removes $FOLDER at the end.

  PYTHON312=COMMAND   the Python 3.12 to use (default: python3.12, or what uv or pyenv has)
  KEEP=1              keep $FOLDER, and use an environment that is there

Needs gcc, nm, libnuma.so.1, $DISK_MB MB of disk, and sglang/RELEASE with its patches.
Exit codes: 0 all is well; 1 a check failed; 2 this machine lacks something.
TEXT
}

lacking() { # TEXT
    printf 'cu128: %s\n' "$1" >&2
    exit 2
}

say() { printf 'cu128: %s\n' "$1"; }

find_python() {
    local candidate
    for candidate in "${PYTHON312:-python3.12}" \
        "$(uv python find --no-python-downloads 3.12 2>/dev/null || true)" \
        "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.12.*/bin/python3; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, 12))' \
            2>/dev/null; then
            PYTHON=$candidate
            return
        fi
    done
    lacking "expected Python 3.12 with venv, for which the lock is, found none; install it (apt \
install python3.12-venv, or uv python install 3.12) or name it with PYTHON312=COMMAND"
}

check_machine() {
    local tool free
    for tool in gcc nm git; do
        command -v "$tool" >/dev/null || lacking "expected $tool on PATH, found none; install it"
    done
    [[ -f $LOCK ]] ||
        lacking "expected $LOCK, found none; write it with requirements/compile_cu128.py"
    [[ -d sglang/$RELEASE/python ]] ||
        lacking "expected sglang/$RELEASE with its patches, found none; run scripts/bootstrap.sh"
    scripts/apply_patches.sh --release "$RELEASE" --status --quiet >/dev/null || lacking \
        "expected all patches on sglang/$RELEASE, found otherwise; run scripts/apply_patches.sh"
    free=$(df --output=avail -m . | tail -n 1)
    [[ -d $VENV ]] || ((free >= DISK_MB)) ||
        lacking "expected $DISK_MB MB of free disk, found $free; free some"
    find_python
}

install_lock() {
    [[ ! -e $VENV/complete ]] || return 0
    rm -rf "$VENV"
    "$PYTHON" -m venv "$VENV"
    "$VENV/bin/pip" install --quiet --require-hashes -r requirements/pip.txt
    # Imported a few times only: compiling everything would take longer than it spares.
    "$VENV/bin/pip" install --quiet --no-compile --no-cache-dir --only-binary=:all: \
        --require-hashes -r "$LOCK"
    touch "$VENV/complete"
}

# Every function that one of the libraries wants of the driver, and each says "no device".
make_stub() { # LIBRARIES...
    mkdir -p "$STUB"
    nm --dynamic --undefined-only "$@" 2>/dev/null |
        awk '$1 == "U" && $2 ~ /^cu[A-Z]/ { print $2 }' | sort -u |
        sed 's/.*/int &(void) { return 100; }/' >"$STUB/libcuda.c"
    [[ -s $STUB/libcuda.c ]] || lacking "expected libraries that want libcuda, found none in $VENV"
    gcc -shared -fPIC -Wl,-soname,libcuda.so.1 -o "$STUB/libcuda.so.1" "$STUB/libcuda.c"
    ln -sf libcuda.so.1 "$STUB/libcuda.so" # Triton links its helper with -lcuda
}

# Each in a process of its own: two of them register the same operators.
load_library() { # PATH
    "$VENV/bin/python" - "$1" <<'PYTHON'
import ctypes, os, sys
import torch

names = torch._C._dispatch_get_all_op_names
before = set(names())
ctypes.CDLL(sys.argv[1], os.RTLD_NOW)
added = len(set(names()) - before)
print(f"cu128: {'/'.join(sys.argv[1].split('/')[-2:])} loads and registers {added} operators")
sys.exit(added == 0)
PYTHON
}

# What only these tests need comes beside the environment, so that this stays what the lock says.
run_unit_tests() {
    local tools=$FOLDER/tools
    awk '/^[a-z]/ { keep = /^(iniconfig|pluggy|pytest|pytest-timeout|ruff)==/ } keep' \
        requirements/dev.txt >"$FOLDER/tools.txt"
    "$VENV/bin/pip" install --quiet --no-deps --require-hashes --upgrade --target "$tools" \
        -r "$FOLDER/tools.txt"
    env -u LD_LIBRARY_PATH -u LIBRARY_PATH \
        PYTHONPATH="$PWD/sglang/$RELEASE/python:$PWD/scripts:$PWD/$tools" \
        "$VENV/bin/python" -m pytest -q -p no:cacheprovider -W ignore tests/patches
}

main() {
    if [[ ${1:-} == -h || ${1:-} == --help ]]; then
        usage
        return
    fi
    RELEASE=${1:-0.5.11}
    LOCK=requirements/cu128-$RELEASE.lock
    unset PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX PIP_USER
    check_machine
    [[ -n ${KEEP:-} ]] || trap 'rm -rf "$FOLDER"' EXIT
    mkdir -p "$FOLDER"

    say "installing $LOCK with $("$PYTHON" --version)"
    install_lock
    say "installed after $SECONDS s: $(du -sh "$VENV" | cut -f1) in $VENV"

    local packages=$VENV/lib/python3.12/site-packages libraries library failed=0 capability
    mapfile -t libraries < <(find "$packages/sgl_kernel" -name '*.so' | sort)
    make_stub "${libraries[@]}" "$packages"/deep_gemm/*.so "$packages/torch/lib/libcaffe2_nvrtc.so"
    export LD_LIBRARY_PATH=$PWD/$STUB LIBRARY_PATH=$PWD/$STUB
    # What Triton builds against the stub must not be found again by a real server.
    export TRITON_CACHE_DIR=$PWD/$FOLDER/triton FLASHINFER_WORKSPACE_BASE=$PWD/$FOLDER
    # SGLang 0.5.11 asks for the sglang-kernel of CUDA 13 by its version.
    export SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK=1
    for library in "${libraries[@]}"; do
        load_library "$library" || {
            say "expected ${library##*/site-packages/} to load, found the above"
            failed=1
        }
    done
    for capability in 10.0 12.0; do
        "$VENV/bin/python" -W ignore ci/cu128_import.py "$capability" "$RELEASE" || failed=1
    done
    run_unit_tests || failed=1
    say "$([[ $failed == 0 ]] && echo passed || echo FAILED) after $SECONDS s"
    return "$failed"
}

main "$@" </dev/null
