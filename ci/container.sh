#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Build the image of Dockerfile for the CPU and check what it does: see usage() below.
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
cd "$ROOT"
exec </dev/null

DEFAULT_BASE=nvidia/cuda:12.8.1-devel-ubuntu24.04
SUITE=bookworm
BASE_PACKAGES=python3,python3-venv
TOOLS=(buildah podman runc debootstrap)
STOP_S=10
START_S=180

PATH=$PATH:/usr/sbin:/sbin
WORK=$ROOT/build/image
# Never the name of the real base: a later build without arguments must not find this one.
BASE=localhost/sglang-ddtree-base:$SUITE
NAME=sglang-ddtree-check-$$
HOST_SERVER=
TEMPORARY=
PASSED=0

usage() {
    cat <<TEXT
usage: ci/container.sh [--release R] [--fresh]

Builds the image of Dockerfile with PROFILE=cpu on a base that debootstrap makes, without a
Docker engine, and checks it: the same tokens as the engine in .venv, health, read-only root, no
network, SIGTERM, refusals, labels, and that a corrupted patch ends the build. Needs root, Debian
with apt, and .venv (scripts/bootstrap.sh); ${TOOLS[*]} are installed if they are missing.

  --release R   a release of upstream.toml (default: $(scripts/releases.sh default))
  --fresh       forget the base and the layers of earlier runs first

Nothing keeps running; the base and the layers stay in the local image store, for the next run.
Exit codes: 0 all passed; 1 a check failed; 2 this machine cannot do it.
TEXT
}

step() { printf '[%3d s] %s\n' "$SECONDS" "$1"; }

passed() {
    PASSED=$((PASSED + 1))
    printf '        ok: %s\n' "$1"
}

fail() { # WHAT EXPECTED FOUND
    printf 'container: %s: expected %s, found %s\n' "$1" "$2" "$3" >&2
    exit 1
}

unable() {
    printf 'container: %s\n' "$1" >&2
    exit 2
}

expect() { # WHAT EXPECTED FOUND
    [[ $2 == "$3" ]] || fail "$1" "'$2'" "'$3'"
    passed "$1: $3"
}

clean_up() {
    local code=$?
    trap - EXIT
    [[ -z $HOST_SERVER ]] || kill "$HOST_SERVER" 2>/dev/null || true
    if command -v podman >/dev/null; then
        if ((code)) && podman container exists "$NAME"; then
            echo "container: the end of the container's log:" >&2
            podman logs --tail 25 "$NAME" >&2 || true
        fi
        podman rm --force --ignore "$NAME" >/dev/null 2>&1 || true
    fi
    [[ -z $TEMPORARY ]] || rm -rf --one-file-system "$TEMPORARY"
    exit "$code"
}

need_tools() {
    local tool missing=()
    [[ $(id -u) == 0 ]] || unable "user: expected root, found $(id -un); run this as root"
    [[ -x $PYTHON ]] || unable "$PYTHON: expected it, found none; run scripts/bootstrap.sh"
    for tool in "${TOOLS[@]}"; do
        command -v "$tool" >/dev/null || missing+=("$tool")
    done
    ((${#missing[@]})) || return 0
    command -v apt-get >/dev/null ||
        unable "tools: expected ${missing[*]}, found neither them nor apt-get; install them"
    step "installing ${missing[*]}"
    if ! { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes \
        --no-install-recommends "${missing[@]}"; } >"$WORK/apt.log" 2>&1; then
        unable "tools: expected apt-get to install ${missing[*]}, found: $(tail -n 1 "$WORK/apt.log"); see build/image/apt.log"
    fi
}

check_files() {
    local hadolint=${PYTHON%/*}/hadolint shellcheck=${PYTHON%/*}/shellcheck found
    found=$(sed -nE 's/^ARG BASE_IMAGE=(.+)$/\1/p' Dockerfile)
    expect "default base" "$DEFAULT_BASE" "$found"
    "$hadolint" Dockerfile || fail "hadolint" "no finding" "the above"
    passed "hadolint: no finding"
    "$shellcheck" --external-sources ci/container.sh scripts/container/*.sh ||
        fail "shellcheck" "no finding" "the above"
    passed "shellcheck: no finding"
}

# The base of the check stands where the CUDA image stands in the real build.
make_base() {
    local folder=$TEMPORARY/base
    if podman image exists "$BASE"; then
        step "the base $BASE is there"
        return
    fi
    step "making the base with debootstrap"
    debootstrap --force-check-gpg --variant=minbase --include="$BASE_PACKAGES" "$SUITE" "$folder" \
        >"$WORK/debootstrap.log" 2>&1 ||
        unable "base: expected debootstrap to make $SUITE, found: $(tail -n 1 "$WORK/debootstrap.log"); see build/image/debootstrap.log"
    rm -rf "$folder"/var/cache/apt/archives/*.deb "$folder"/var/lib/apt/lists/*
    tar -C "$folder" --one-file-system -c . | podman import --quiet - "$BASE" >/dev/null
    rm -rf --one-file-system "$folder"
}

build() { # CONTEXT LOG OPTION...
    local context=$1 log=$2
    shift 2
    buildah bud --format docker --isolation chroot --network host --layers \
        --build-arg "BASE_IMAGE=$BASE" --build-arg PROFILE=cpu --build-arg "RELEASE=$RELEASE" \
        --build-arg "SERIES_ID=$SERIES" "${PIP[@]}" "$@" "$context" >"$log" 2>&1
}

check_corrupted_patch() {
    local context=$TEMPORARY/context patch
    mkdir "$context"
    cp -a Dockerfile .dockerignore upstream.toml models patches requirements scripts "$context"
    patch=$(sed -nE 's/^([0-9]{4}-[^ ]+\.patch).*/\1/p' "patches/$RELEASE/series" | head -n 1)
    sed -i '0,/^+[^+]/s//& /' "$context/patches/$RELEASE/$patch"
    ! cmp -s "$context/patches/$RELEASE/$patch" "patches/$RELEASE/$patch" ||
        fail "corrupted patch" "another file than $patch" "the same"
    if build "$context" "$WORK/corrupted.log" --target build; then
        fail "corrupted patch" "the build to fail" "that it passed"
    fi
    grep -q "^apply_patches.sh: $patch" "$WORK/corrupted.log" ||
        fail "corrupted patch" "a line of the tool that names $patch" "$(tail -n 1 "$WORK/corrupted.log")"
    passed "a corrupted $patch ends the build"
}

inspect() { podman image inspect --format "$1" "$IMAGE"; } # TEMPLATE

label() { inspect "{{index .Config.Labels \"$1\"}}"; } # NAME

check_image() {
    expect "label: upstream's version" "$RELEASE" "$(label org.opencontainers.image.version)"
    expect "label: series" "$SERIES" "$(label sglang-ddtree.series)"
    expect "label: profile" cpu "$(label sglang-ddtree.profile)"
    expect "label: licence" Apache-2.0 "$(label org.opencontainers.image.licenses)"
    expect "user" 10001:0 "$(inspect '{{.Config.User}}')"
    expect "port" 'map[30000/tcp:{}]' "$(inspect '{{.Config.ExposedPorts}}')"
    expect "signal" SIGTERM "$(inspect '{{.Config.StopSignal}}')"
    mapfile -t HEALTH < <(podman image inspect "$IMAGE" | "$PYTHON" -c '
import json, sys
kind, *command = json.load(sys.stdin)[0]["Healthcheck"]["Test"]
print(*command if kind == "CMD" else [], sep="\n")')
    [[ ${#HEALTH[@]} -gt 1 ]] || fail "health check" "a command in the image" "${HEALTH[*]:-none}"
}

# One engine at a time: this one has ended before the container starts.
ask_host() {
    local port code=0
    port=$("$PYTHON" -c 'import socket
with socket.create_server(("127.0.0.1", 0)) as s: print(s.getsockname()[1])')
    "$PYTHON" scripts/demo/serve.py --port "$port" >"$WORK/host.log" 2>&1 &
    HOST_SERVER=$!
    until grep -q '^Ctrl-C stops it' "$WORK/host.log"; do
        kill -0 "$HOST_SERVER" 2>/dev/null ||
            fail "host engine" "it to start" "$(tail -n 1 "$WORK/host.log")"
        sleep 0.5
    done
    "$PYTHON" ci/container/ask.py "$port" "$PROMPTS" >"$TEMPORARY/host.json" || code=$?
    kill "$HOST_SERVER"
    wait "$HOST_SERVER" || true
    HOST_SERVER=
    ((code == 0)) || fail "host engine" "an answer" "exit code $code"
}

run_container() { # OPTION... -- ARGUMENT...
    local options=()
    while [[ $1 != -- ]]; do
        options+=("$1")
        shift
    done
    shift
    podman run --name "$NAME" --network none --read-only --runtime runc \
        --ulimit nofile=1024:1024 --ulimit nproc=4096:4096 --no-healthcheck \
        --cap-drop ALL --security-opt no-new-privileges \
        "${options[@]}" "$IMAGE" "$@"
}

# Podman cannot run the check on a timer here, so its command is run as Docker would.
is_healthy() { podman exec "$NAME" "${HEALTH[@]}"; }

check_serving() {
    local begun=$SECONDS found
    run_container --detach -- >/dev/null
    ! is_healthy >/dev/null 2>&1 || fail "health check" "exit code 1 while it starts" "0"
    until is_healthy >/dev/null 2>&1; do
        [[ $(podman inspect --format '{{.State.Running}}' "$NAME") == true ]] ||
            fail "container" "it to run" "that it ended"
        ((SECONDS - begun < START_S)) || fail "health check" "exit code 0 in $START_S s" "$(is_healthy 2>&1 || true)"
        sleep 1
    done
    passed "healthy after $((SECONDS - begun)) s, not before"
    podman logs "$NAME" >"$WORK/container.log" 2>&1
    for found in "with the series $SERIES" "--speculative-algorithm DDTREE: " \
        "--attention-backend torch_native: "; do
        grep -qF -- "$found" "$WORK/container.log" || fail "log" "'$found'" "no such line"
    done
    passed "it says what it serves, what it chose and why"
    podman exec "$NAME" python -c "$(<ci/container/inside.py)" >"$TEMPORARY/inside" ||
        fail "inside" "nothing wrong" "$(<"$TEMPORARY/inside")"
    passed "inside: no root, read-only, patched sglang, bytecode of every module"
    podman exec "$NAME" python -c "$(<ci/container/ask.py)" 30000 "$PROMPTS" >"$TEMPORARY/inside.json" ||
        fail "request from inside" "an answer" "none"
    found=$("$PYTHON" - "$TEMPORARY/host.json" "$TEMPORARY/inside.json" <<'PY'
import json, sys
host, inside = (json.load(open(name)) for name in sys.argv[1:])
same = sum(a[0] == b[0] for a, b in zip(host, inside, strict=True))
tokens, steps = sum(len(a[0]) for a in inside), sum(a[1] for a in inside)
print(f"{same} of {len(host)} texts, {tokens} tokens in {steps} verify steps")
sys.exit(same != len(host) or tokens <= 2 * steps or steps == 0)
PY
    ) || fail "tokens" "those of the engine in .venv, more than 2 a step" "the same in $found"
    passed "the tokens of the engine in .venv: $found"
}

check_stop() {
    local begun=$EPOCHREALTIME took
    podman stop --time "$STOP_S" "$NAME" >/dev/null
    took=$(awk -v a="$begun" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f", b - a }')
    expect "exit code after SIGTERM" 0 "$(podman inspect --format '{{.State.ExitCode}}' "$NAME")"
    awk -v t="$took" -v s="$STOP_S" 'BEGIN { exit !(t < s) }' || fail "SIGTERM" "the end in $STOP_S s" "$took s"
    passed "ended $took s after SIGTERM"
    podman rm "$NAME" >/dev/null
}

check_refusal() { # LINE OPTION... -- ARGUMENT...
    local line=$1 code=0 lines
    shift
    run_container --rm "$@" >"$TEMPORARY/out" 2>"$TEMPORARY/err" || code=$?
    expect "exit code of a refusal" 2 "$code"
    lines=$(wc -l <"$TEMPORARY/err")
    { ((lines == 1)) && grep -qE -- "^ddtree: $line" "$TEMPORARY/err"; } ||
        fail "refusal" "one line, '$line'" "$lines: $(head -c 1000 "$TEMPORARY/err")"
    passed "refused: $(cut -c 9-100 "$TEMPORARY/err")..."
}

main() {
    local fresh=
    RELEASE=$(scripts/releases.sh default)
    while (($#)); do
        case $1 in
            --fresh) fresh=1 ;;
            --release)
                (($# > 1)) || unable "--release: expected a release after it, found nothing"
                RELEASE=$2
                shift
                ;;
            -h | --help)
                usage
                return
                ;;
            *) unable "expected --release R or --fresh, found '$1'; see --help" ;;
        esac
        shift
    done
    # It prints what is wrong with an unknown release.
    PYTHON=$ROOT/$(scripts/releases.sh venv "$RELEASE")/bin/python || exit 2
    IMAGE=localhost/sglang-ddtree:check-$RELEASE
    mkdir -p "$WORK"
    trap clean_up EXIT
    trap 'exit 130' INT TERM HUP
    need_tools
    TEMPORARY=$(mktemp -d "$WORK/tmp.XXXXXX")
    if [[ -n $fresh ]]; then
        podman rmi --force --ignore "$IMAGE" "$BASE" >/dev/null
    fi
    SERIES=$(cd scripts && "$PYTHON" -m container.series_id "$RELEASE")
    PROMPTS=$("$PYTHON" -c 'import json
print(json.dumps([p["prompt"] for p in json.load(open("models/tiny/held_out_prompts.json"))[::4]]))')
    "$PYTHON" ci/container/pip_settings.py "$WORK/pip.conf" >"$TEMPORARY/pip"
    mapfile -t PIP <"$TEMPORARY/pip"

    step "checking the files"
    check_files
    make_base
    step "building the image"
    build . "$WORK/build.log" --tag "$IMAGE" ||
        fail "build" "it to pass" "$(tail -n 1 "$WORK/build.log") (build/image/build.log)"
    passed "built, $(inspect '{{.Size}}' | awk '{ printf "%.2f GB", $1 / 1e9 }')"
    check_image
    step "building it with a corrupted patch"
    check_corrupted_patch
    step "asking the engine in .venv"
    ask_host
    step "serving from the container"
    check_serving
    step "ending it"
    check_stop
    step "refusals"
    check_refusal "DDTREE needs an attention backend that takes a tree mask" -- --attention-backend fa3
    check_refusal "--model-path /models/absent: expected a folder in the container, found none" \
        -- --model-path /models/absent
    check_refusal "GPU: expected one, found no NVIDIA driver" --env DDTREE_PROFILE=cu128 -- --model-path a/b
    printf 'container: %d checks passed after %d s\n' "$PASSED" "$SECONDS"
}

main "$@"
