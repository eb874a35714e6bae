# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# Progress of scripts/bootstrap.sh: numbered steps with elapsed time, a heartbeat for long
# commands, and one-line failures. Sourced; expects STEPS and LOG to be set by the caller.

CURRENT_STEP=0
CHILD=

say() { printf 'bootstrap: %s\n' "$*"; }

fail() { # CODE MESSAGE
    printf 'bootstrap: %s\n' "$2" >&2
    exit "$1"
}

step() { # MESSAGE
    CURRENT_STEP=$((CURRENT_STEP + 1))
    printf '[%d/%d] %s (%d s)\n' "$CURRENT_STEP" "$STEPS" "$1" "$SECONDS"
}

# Runs a command with its output in $LOG and reports every ten seconds that it is alive,
# with the size of a folder that it fills. Returns the command's exit code.
with_heartbeat() { # FOLDER COMMAND...
    local folder=$1 start=$SECONDS next=10
    shift
    "$@" >>"$LOG" 2>&1 &
    CHILD=$!
    while kill -0 "$CHILD" 2>/dev/null; do
        sleep 0.2
        if ((SECONDS - start >= next)); then
            next=$((next + 10))
            printf '      ... still working: %d s, %s MB in %s\n' "$((SECONDS - start))" \
                "$(du -sm "$folder" 2>/dev/null | cut -f1)" "${folder#"$ROOT/"}"
        fi
    done
    local code=0
    wait "$CHILD" || code=$?
    CHILD=
    return "$code"
}

# A background child of a script ignores Ctrl-C, so it is ended by hand.
stop_child() {
    [[ -z $CHILD ]] || kill "$CHILD" 2>/dev/null || true
    fail 130 "interrupted: run this again to complete it"
}
trap stop_child INT TERM HUP

# The line of $LOG that says most about a failure, for a one-line message.
last_error() {
    { grep -E '^ *(ERROR|[A-Za-z.]*Error|error)\b' "$LOG" || tail -n 1 "$LOG"; } | tail -n 1 |
        sed 's/^ *//' | cut -c1-300
}
