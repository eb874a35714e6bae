#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The system packages of one stage of Dockerfile, and the user that serves; run as root there.
#
#   scripts/container/system.sh build|serve PROFILE
#
# Packages come from the distribution of the base image, which signs them; what the base has
# already is not taken again.
set -euo pipefail

STAGE=${1:?build or serve} PROFILE=${2:?cu128 or cpu}

case $STAGE-$PROFILE in
    # ca-certificates: pip's index; git: scripts/patchset checks and applies with it.
    build-cu128 | build-cpu) PACKAGES=(ca-certificates git python3 python3-venv) ;;
    # Triton compiles its launchers with a C compiler and Python's headers when a kernel is first
    # used, SGLang some of its kernels with the base's nvcc, which needs g++; SGLang binds processes
    # to memory with libnuma.
    serve-cu128) PACKAGES=(ca-certificates g++ gcc libc6-dev libnuma1 python3 python3-dev) ;;
    serve-cpu) PACKAGES=(python3) ;;
    *)
        echo "system.sh: expected build or serve, and cu128 or cpu, found '$STAGE $PROFILE'; see --build-arg PROFILE" >&2
        exit 2
        ;;
esac

missing=()
for package in "${PACKAGES[@]}"; do
    [[ $(dpkg-query --show --showformat '${db:Status-Status}' "$package" 2>/dev/null) == installed ]] ||
        missing+=("$package")
done
if ((${#missing[@]})); then
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update
    apt-get -qq install --yes --no-install-recommends "${missing[@]}" >/dev/null
    rm -rf /var/lib/apt/lists/*
fi

[[ $STAGE == serve ]] || exit 0
# Group 0 may write what the user may, so that any other number of --user works with it. The cache
# exists so that a named volume that is mounted there belongs to the user.
useradd --no-log-init --uid 10001 --gid 0 --no-create-home --home-dir /home/ddtree \
    --shell /usr/sbin/nologin ddtree
install --directory --owner 10001 --group 0 --mode 0775 /home/ddtree /home/ddtree/.cache \
    /home/ddtree/.cache/huggingface
