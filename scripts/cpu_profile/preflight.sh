# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the machine must have before scripts/bootstrap.sh starts. Every check adds at most one
# line to PROBLEMS: what was expected, what was found, what to do. Nothing is written.

PYTHON_MIN_MINOR=10
PYTHON_MAX_MINOR=13
PROBLEMS=()

problem() { PROBLEMS+=("$1"); }

python_version() { # COMMAND -> "3.11.7", or nothing if it does not run
    "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null || true
}

in_range() { # VERSION
    [[ $1 =~ ^3\.([0-9]+)\. ]] &&
        ((BASH_REMATCH[1] >= PYTHON_MIN_MINOR && BASH_REMATCH[1] <= PYTHON_MAX_MINOR))
}

# Sets BASE_PYTHON to $PYTHON, or to the first usable one of the usual names.
find_python() {
    local range="3.$PYTHON_MIN_MINOR to 3.$PYTHON_MAX_MINOR" version candidate found=
    if [[ -n ${PYTHON:-} ]]; then
        version=$(python_version "$PYTHON")
        if ! in_range "$version"; then
            problem "Python: expected $range, found ${version:-nothing that runs} (PYTHON=$PYTHON); set PYTHON to another interpreter or unset it"
            return
        fi
        BASE_PYTHON=$PYTHON
        return
    fi
    for candidate in python3 python3.12 python3.11 python3.13 python3.10; do
        version=$(python_version "$candidate")
        if in_range "$version"; then
            BASE_PYTHON=$candidate
            return
        fi
        [[ -z $version ]] || found="${found:+$found, }$candidate $version"
    done
    problem "Python: expected $range, found ${found:-none}; install one or set PYTHON=/path/to/python3.11"
}

check_python_modules() {
    local missing
    missing=$("$BASE_PYTHON" - <<'PY'
import importlib.util, sys
names = [n for n in ("venv", "ensurepip", "ctypes") if importlib.util.find_spec(n) is None]
if sys.implementation.name != "cpython" or "t" in getattr(sys, "abiflags", ""):
    names.append("a CPython build with the GIL")
print(" and ".join(names))
PY
    ) || missing="a working interpreter"
    [[ -z $missing ]] ||
        problem "$BASE_PYTHON: expected its venv, ensurepip and ctypes modules, found no $missing; install your system's python3-venv package or set PYTHON"
}

check_git() {
    local version
    version=$(git --version 2>/dev/null | sed -nE 's/^git version ([0-9]+\.[0-9]+).*/\1/p') || true
    if [[ -z $version ]]; then
        problem "git: expected 2.38 or newer, found none; install git"
    elif ((${version%.*} < 2 || (${version%.*} == 2 && ${version#*.} < 38))); then
        problem "git: expected 2.38 or newer, found $version; upgrade git"
    fi
}

check_make() {
    command -v make >/dev/null || problem "make: expected GNU make on PATH, found none; install make"
}

check_platform() {
    local machine libc
    machine="$(uname -s) $(uname -m)"
    [[ $machine == "Linux x86_64" ]] ||
        problem "platform: expected Linux x86_64 (the SGLang wheel is built for it), found $machine; use such a machine or a container of it"
    libc=$(getconf GNU_LIBC_VERSION 2>/dev/null | sed -nE 's/^glibc ([0-9]+\.[0-9]+).*/\1/p') || true
    if [[ -z $libc ]]; then
        problem "C library: expected glibc 2.34 or newer, found another C library; use a distribution with glibc"
    elif ((${libc%.*} < 2 || (${libc%.*} == 2 && ${libc#*.} < 34))); then
        problem "C library: expected glibc 2.34 or newer, found glibc $libc; use a newer distribution (Debian 12, Ubuntu 22.04, RHEL 9)"
    fi
}

# Free space where the checkout lies; downloads go there too (see TMPDIR in bootstrap.sh).
check_disk() { # NEEDED_MB WHY
    local free
    free=$(df -Pk "$ROOT" | awk 'NR == 2 { print int($4 / 1024) }')
    ((free >= $1)) ||
        problem "disk: expected $1 MB free in $ROOT ($2), found $free MB; free some space or clone elsewhere"
}

check_writable() {
    [[ -w $ROOT ]] || problem "folder: expected to be able to write to $ROOT, found it read-only; check its owner"
}

# Prints the problems found so far and exits 2 if there are any.
stop_on_problems() {
    ((${#PROBLEMS[@]})) || return 0
    printf 'bootstrap: %s\n' "${PROBLEMS[@]}" >&2
    exit 2
}
