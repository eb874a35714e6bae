#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prepare this checkout to run and to test on a CPU: see usage() below.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
STEPS=5
# Measured: the environment, the downloads beside it and pip's cache of them, and a margin.
DISK_MB_CPU=3500
DISK_MB_CUDA=12000

# shellcheck source=scripts/cpu_profile/progress.sh
source "$ROOT/scripts/cpu_profile/progress.sh"
# shellcheck source=scripts/cpu_profile/preflight.sh
source "$ROOT/scripts/cpu_profile/preflight.sh"

usage() {
    cat <<TEXT
usage: scripts/bootstrap.sh [--release RELEASE]

Makes a virtual environment with the pinned packages of the CPU profile, materialises the
pinned SGLang release under sglang/RELEASE and applies patches/RELEASE to it. Run it again at
any time: it does what is missing, and nothing when all is current. The environment is .venv
for the default release, and .venv-RELEASE for another, so that all can stand side by side.

  --release RELEASE   a release of upstream.toml (default: the default one there)
  -h, --help          this text

  PYTHON=COMMAND      the Python to use, 3.10 to 3.13 (default: the first that fits)

Packages come from where pip is configured to look. If that includes CPU builds of torch, one
is chosen and $DISK_MB_CPU MB of disk are enough. PyPI alone has a CUDA build, which runs on a
CPU as well but takes $DISK_MB_CUDA MB while it is installed.

Exit codes: 0 ready; 1 a step failed; 2 wrong usage, or the machine lacks something (nothing
was created); 3 to 6 from scripts/apply_patches.sh; 130 interrupted.
TEXT
}

parse_arguments() {
    local releases list
    releases=$("$ROOT/scripts/releases.sh") || exit
    list=${releases//$'\n'/, }
    RELEASE=$("$ROOT/scripts/releases.sh" default)
    while (($#)); do
        case $1 in
            --release)
                RELEASE=${2:-}
                [[ -n $RELEASE ]] || fail 2 "--release: expected one of $list, found nothing; name one"
                shift
                ;;
            -h | --help)
                usage
                exit 0
                ;;
            *) fail 2 "arguments: expected --release RELEASE or --help, found '$1'; see --help" ;;
        esac
        shift
    done
    grep -qxF -- "$RELEASE" <<<"$releases" ||
        fail 2 "--release: expected one of $list, found '$RELEASE'; name one of them"
    [[ -f $ROOT/requirements/cpu-$RELEASE.txt ]] ||
        fail 2 "packages: expected requirements/cpu-$RELEASE.txt, found none; write cpu-$RELEASE.in there and run requirements/compile.py"
    VENV=$ROOT/$("$ROOT/scripts/releases.sh" venv "$RELEASE")
    LOG=$VENV/bootstrap.log
}

check_machine() { # MB of disk that are needed
    find_python
    [[ -z ${BASE_PYTHON:-} ]] || check_python_modules
    check_git
    check_make
    check_platform
    check_writable
    check_disk "$1" "packages and the SGLang tree"
    [[ ! -e $VENV || -f $STATE ]] ||
        problem "${VENV##*/}: expected none, or one that this script made, found another; move it away or remove it"
    stop_on_problems
}

# Two runs for one release would write over each other: the second waits for the first.
wait_for_other_run() {
    command -v flock >/dev/null || return 0
    exec 9<"$CPU_TXT"
    flock --nonblock 9 && return
    say "another run is at work on ${VENV##*/}: waiting for it"
    # Not one long wait: bash acts on a signal only between commands.
    until flock --nonblock 9; do sleep 0.5; done
}

# A server is several processes that import SGLang and its packages: without this, where Python
# is told to write no bytecode, each of them would compile everything anew.
compile_bytecode() {
    # Some packages ship files that are no Python 3; nobody imports them.
    with_heartbeat "$VENV" "$VENV_PYTHON" -m compileall -qq -j 0 "$VENV/lib" || true
    with_heartbeat "$VENV" "$VENV_PYTHON" -m compileall -q "$ROOT/sglang/$RELEASE/python/sglang" ||
        fail 1 "compile: expected bytecode of every file of sglang $RELEASE, found: $(last_error); see ${LOG#"$ROOT/"}"
}

prove_import() {
    with_heartbeat "$VENV" "$VENV_PYTHON" -c '
import sys
from pathlib import Path
from cpu_profile.environment import set_environment

set_environment()
import sglang
from sglang.srt.entrypoints.engine import Engine

found, expected = Path(sglang.__file__).parent, Path(sys.argv[1], "sglang")
if not found.samefile(expected):
    raise ImportError(f"expected sglang from {expected}, found it in {found}")
' "$ROOT/sglang/$RELEASE/python" ||
        fail 1 "import: expected ${VENV_PYTHON#"$ROOT/"} to import sglang $RELEASE, found: $(last_error); see ${LOG#"$ROOT/"}"
}

describe() {
    "$VENV_PYTHON" -c '
import importlib.metadata, platform, sys
print("Python", platform.python_version() + ", torch", importlib.metadata.version("torch") + ",",
      "sglang", sys.argv[1], "with its patches")' "$RELEASE"
}

# Whether every patch is applied; edits on top of them are a developer's own business.
tree_is_current() {
    [[ -d $ROOT/sglang/$RELEASE ]] || return 1
    { "$ROOT/scripts/apply_patches.sh" --release "$RELEASE" --status --json 2>/dev/null || true; } |
        "$VENV_PYTHON" -c '
import json, sys
try:
    status = json.load(sys.stdin)
except ValueError:
    sys.exit(1)
sys.exit(status["problem"] is not None or bool(status.get("missing")) or
         not all(p["applied"] for p in status["patches"]))'
}

main() {
    parse_arguments "$@"
    # shellcheck source=scripts/cpu_profile/venv.sh
    source "$ROOT/scripts/cpu_profile/venv.sh"
    # A foreign setting of one of these would install or import somewhere else.
    unset PYTHONPATH PYTHONHOME PIP_TARGET PIP_PREFIX PIP_ROOT PIP_USER
    wait_for_other_run

    local venv_current=yes
    venv_is_current || venv_current=
    if [[ $venv_current ]] && tree_is_current; then
        say "nothing to do: $(describe)"
        return
    fi

    step "checking this machine"
    check_machine "$([[ $venv_current ]] && echo 200 || echo "$DISK_MB_CPU")"
    if [[ $venv_current ]]; then
        step "the packages in ${VENV##*/} are current"
    else
        step "installing the pinned packages into ${VENV##*/}"
        make_venv
        choose_torch
        check_torch_fits
        fill_venv
    fi
    step "materialising sglang $RELEASE"
    "$VENV_PYTHON" -m patchset.materialise --release "$RELEASE"
    step "applying patches/$RELEASE"
    "$ROOT/scripts/apply_patches.sh" --release "$RELEASE"
    tree_is_current ||
        fail 1 "sglang/$RELEASE: expected all files of the series, found some missing (scripts/apply_patches.sh --status names them); remove sglang/$RELEASE and run this again"
    step "compiling and importing sglang"
    compile_bytecode
    prove_import
    say "ready after $SECONDS s: $(describe)"
}

main "$@" </dev/null
