# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# The virtual environment of scripts/bootstrap.sh. Sourced; expects ROOT, RELEASE, VENV, LOG
# and BASE_PYTHON from there, and progress.sh and preflight.sh to have been sourced.

VENV_PYTHON=$VENV/bin/python
# Present from the first moment: says that the environment is ours. Holds the fingerprint of
# what was installed, written last, so that an interrupted run is seen and repaired.
STATE=$VENV/sglang-ddtree.state

PIP_TXT=$ROOT/requirements/pip.txt
CPU_TXT=$ROOT/requirements/cpu-$RELEASE.txt
DEV_TXT=$ROOT/requirements/dev.txt

# Releases that pin the same torch share the files of its two builds.
TORCH=$(sed -nE 's/^torch==([^ ]+).*/\1/p' "$ROOT/requirements/cpu-$RELEASE.in")
torch_txt() { printf '%s\n' "$ROOT/requirements/torch-$1-$TORCH.txt"; } # cpu|cuda

# Lines of the .pth file; relative to site-packages, so that a moved checkout still works.
links() { # cpu|cuda
    printf '../../../../%s\n' "sglang/$RELEASE/python" scripts
    [[ $1 != cpu ]] || echo 'import cpu_profile.torchvision_ops'
}

# What decides whether the environment is current: the Python, the links, the pins.
fingerprint() { # PYTHON_VERSION
    {
        printf 'python %s\n' "${1%.*}"
        links cpu
        cat "$PIP_TXT" "$CPU_TXT" "$DEV_TXT" "$(torch_txt cpu)" "$(torch_txt cuda)"
    } | sha256sum | cut -d' ' -f1
}

venv_is_current() {
    local version
    [[ -f $STATE ]] || return 1
    version=$(python_version "$VENV_PYTHON")
    in_range "$version" || return 1
    if [[ -n ${PYTHON:-} && $(python_version "$PYTHON") != "${version%.*}".* ]]; then
        return 1
    fi
    [[ $(<"$STATE") == "$(fingerprint "$version")" ]]
}

pip_install() {
    "$VENV_PYTHON" -m pip install --require-hashes --no-deps --only-binary :all: \
        --disable-pip-version-check --no-input --progress-bar off --no-compile "$@"
}

install_packages() {
    with_heartbeat "$VENV" pip_install "$@" ||
        fail 1 "packages: expected pip to install the pinned ones, found: $(last_error); check the network and pip's configuration (log: ${LOG#"$ROOT/"}) and run this again"
}

# Starts the environment afresh, with the pinned pip. TMPDIR moves into it: pip keeps every
# download there until it has them all, and /tmp is often too small for that.
make_venv() {
    if [[ -e $VENV ]]; then
        say "${VENV##*/} is out of date or an earlier run did not finish: making it anew"
        find "$VENV/" -mindepth 1 -maxdepth 1 ! -name "${STATE##*/}" -exec rm -rf {} +
    fi
    mkdir -p "$VENV"
    echo incomplete >"$STATE"
    : >"$LOG"
    mkdir "$VENV/tmp"
    export TMPDIR=$VENV/tmp
    with_heartbeat "$VENV" "$BASE_PYTHON" -m venv "$VENV" ||
        fail 1 "venv: expected '$BASE_PYTHON -m venv' to work, found: $(last_error); see ${LOG#"$ROOT/"}"
    install_packages -r "$PIP_TXT"
}

# The torch that pip is configured to find decides: one of the pinned CPU builds if it is
# one of these, else the build that PyPI has. Read from metadata, before anything is fetched.
choose_torch() { # sets TORCH_BUILD to cpu or cuda
    local pin digest
    say "asking pip which build of torch it finds"
    pin=$(sed -nE 's/^torch===([^ ]+).*/torch==\1/p' "$(torch_txt cuda)")
    digest=$("$VENV_PYTHON" -m pip install --dry-run --quiet --report - --ignore-installed \
        --no-deps --only-binary :all: --disable-pip-version-check --no-input "$pin" 2>>"$LOG" |
        "$VENV_PYTHON" -c '
import json, sys
archive = json.load(sys.stdin)["install"][0]["download_info"]["archive_info"]
print(archive["hash"].removeprefix("sha256="))  # every pip since 22.2 has this form' 2>>"$LOG") ||
        fail 1 "torch: expected pip to find $pin, found: $(last_error); check the network and pip's configuration (log: ${LOG#"$ROOT/"}) and run this again"
    TORCH_BUILD=cuda
    ! grep -qF "sha256:$digest" "$(torch_txt cpu)" || TORCH_BUILD=cpu
}

# Refuses a CUDA build that would not fit, leaving nothing behind.
check_torch_fits() {
    [[ $TORCH_BUILD == cuda ]] || return 0
    check_disk "$DISK_MB_CUDA" "pip finds only the CUDA build of torch; with a CPU build, $DISK_MB_CPU MB are enough"
    ((${#PROBLEMS[@]} == 0)) || rm -rf "$VENV"
    stop_on_problems
    say "pip finds only the CUDA build of torch, which runs on a CPU as well: about 3 GB to download"
}

# Makes the environment's Python import SGLang and scripts/ from this checkout.
link_sources() {
    local site
    site=$("$VENV_PYTHON" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
    links "$TORCH_BUILD" >"$site/sglang-ddtree.pth"
}

fill_venv() {
    install_packages -r "$CPU_TXT" -r "$DEV_TXT" -r "$(torch_txt "$TORCH_BUILD")"
    link_sources
    rm -rf "$VENV/tmp"
    unset TMPDIR
    fingerprint "$(python_version "$VENV_PYTHON")" >"$STATE.new"
    mv "$STATE.new" "$STATE"
}
