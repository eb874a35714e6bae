# SPDX-License-Identifier: Apache-2.0
"""Compare a large sample with an exact distribution."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

from scipy.stats import chi2

# Cells expected less often are pooled: the chi-square law needs counts of a few.
_MIN_EXPECTED = 10.0


@dataclass(frozen=True)
class Comparison:
    """A sample against its exact law."""

    p_value: float  # of the chi-square test
    total_variation: float  # of the empirical from the exact distribution
    # An upper bound of the total variation that a correct sampler exceeds with
    # probability below 1e-6 (McDiarmid, on top of the mean's bound by Cauchy-Schwarz).
    total_variation_bound: float
    impossible: int  # sampled outcomes that the exact law gives probability zero

    def agrees(self, significance: float = 1e-6) -> bool:
        """False for a sample that a correct sampler gives with probability < ~2e-6."""
        return (
            self.impossible == 0
            and self.p_value >= significance
            and self.total_variation <= self.total_variation_bound
        )


def compare(sample: Counter, exact: Mapping[Hashable, float]) -> Comparison:
    """Chi-square and total variation of `sample` against `exact` (which sums to 1)."""
    n = sum(sample.values())
    assert math.isclose(math.fsum(exact.values()), 1.0, abs_tol=1e-6)
    impossible = sum(count for outcome, count in sample.items() if exact.get(outcome, 0.0) == 0.0)
    statistic, cells, pooled_expected, pooled_observed = 0.0, 0, 0.0, 0
    for outcome, p in exact.items():
        expected, observed = n * p, sample.get(outcome, 0)
        if expected < _MIN_EXPECTED:
            pooled_expected += expected
            pooled_observed += observed
        else:
            statistic += (observed - expected) ** 2 / expected
            cells += 1
    if pooled_expected >= 1.0:
        statistic += (pooled_observed - pooled_expected) ** 2 / pooled_expected
        cells += 1
    p_value = float(chi2.sf(statistic, max(cells - 1, 1)))
    distance = 0.5 * (sum(abs(sample.get(o, 0) / n - p) for o, p in exact.items()) + impossible / n)
    mean_bound = 0.5 * sum(math.sqrt(p * (1.0 - p) / n) for p in exact.values())
    deviation = math.sqrt(math.log(1e6) / (2.0 * n))
    return Comparison(p_value, distance, mean_bound + deviation, impossible)
