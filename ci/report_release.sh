#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Report how the series fares on the newest SGLang, for a scheduled job: 0 when every patch is safe,
# 3 when a person must look at one, 2 when there is no report. The report is in FOLDER then, as
# RELEASE-onto-VERSION.md and .json.
#
#   ci/report_release.sh [ONTO [FOLDER]]     default: latest, build/report
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/apply_patches.sh --report --onto "${1:-latest}" --output "${2:-build/report}"
