# SPDX-License-Identifier: Apache-2.0
"""Until 0070 a DDTREE server takes greedy requests only."""

import pytest
from sglang.srt.managers.schedule_batch import Req
from sglang.srt.sampling.sampling_params import SamplingParams
from sglang.srt.speculative.ddtree_request import validate_ddtree_request

pytestmark = pytest.mark.until("0070")


@pytest.mark.parametrize("value", [0.7, 1.0, 1.5, 1e-3])
def test_the_refused_temperature_is_told(value):
    params = SamplingParams(temperature=value)
    error = validate_ddtree_request(Req("r", "", [1, 2, 3], params, vocab_size=10))
    assert "DDTREE" in error and "temperature" in error and str(value) in error
    assert "\n" not in error
