#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Report how the series fares on the newest SGLang, for a scheduled job: 0 when every patch is safe,
# 3 when a person must look at one, 2 when there is no report. The report is in FOLDER then, as
# RELEASE-onto-VERSION.md and .json.
#
#   ci/report_release.sh [ONTO [FOLDER]]     default: latest, build/report
#   RELEASE=R ci/report_release.sh ...       the series of another release than the default one
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

release=${RELEASE:-$(scripts/releases.sh default)}
scripts/apply_patches.sh --release "$release" --report --onto "${1:-latest}" \
    --output "${2:-build/report}"
