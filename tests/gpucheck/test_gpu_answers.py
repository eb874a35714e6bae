# SPDX-License-Identifier: Apache-2.0
"""What counts as equal, as a near tie and as different."""

import pytest
from gpucheck.answers import (
    NEAR_TIE,
    Difference,
    differences,
    first_difference,
    greedy_gap,
    with_gaps,
)
from gpucheck.repetition import repeated_share


def test_equal_answers_have_no_difference():
    assert first_difference("a", [1, 2, 3], (1, 2, 3)) is None
    assert differences({"a": [1], "b": [2]}, {"b": [2], "a": [1]}) == []


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ([1, 2, 3], [1, 9, 3], Difference("a", 1, 2, 9)),
        ([1, 2, 3], [4, 5, 6], Difference("a", 0, 1, 4)),
        ([1, 2], [1, 2, 3], Difference("a", 2, None, 3)),
        ([1, 2, 3], [], Difference("a", 0, 1, None)),
    ],
)
def test_the_first_difference_is_found(left, right, expected):
    assert first_difference("a", left, right) == expected


@pytest.mark.parametrize(("left", "right"), [({"a": [1]}, {"b": [1]}), ({}, {})])
def test_answers_to_other_requests_are_no_comparison(left, right):
    with pytest.raises(ValueError, match="same requests"):
        differences(left, right)


def test_fp32_has_no_near_ties():
    assert not Difference("a", 0, 1, 2, gap=0.0).is_near_tie("float32")


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_near_tie_is_a_measured_gap_within_the_limit(dtype):
    limit = NEAR_TIE[dtype]
    assert Difference("a", 0, 1, 2, gap=limit).is_near_tie(dtype)
    assert not Difference("a", 0, 1, 2, gap=limit * 1.01).is_near_tie(dtype)
    assert not Difference("a", 0, 1, 2, gap=None).is_near_tie(dtype)
    assert not Difference("a", 0, 1, 2, gap=float("nan")).is_near_tie(dtype)


def test_two_tokens_that_tie_far_from_the_best_are_no_near_tie():
    assert greedy_gap(best=-0.1, left=-5.0, right=-5.0) == pytest.approx(4.9)
    assert greedy_gap(best=-0.7, left=-0.7, right=-0.75) == pytest.approx(0.05)


def test_gaps_go_to_their_requests():
    found = [Difference("a", 0, 1, 2), Difference("b", 3, 1, None)]
    assert [d.gap for d in with_gaps(found, {"b": None, "a": 0.25})] == [0.25, None]


def test_a_description_says_where_and_how_far():
    text = Difference("chat 1", 4, 10, 11, 0.3).describe(("graphs", "eager"), "bfloat16")
    for part in ("chat 1", "near tie", "token 5", "10 (graphs)", "11 (eager)", "0.3 nats"):
        assert part in text
    assert "different" in Difference("x", 4, 10, 11, 3.0).describe(("a", "b"), "bfloat16")


def test_repetition():
    assert repeated_share(list(range(50))) == 0.0
    assert repeated_share([1, 2]) == 0.0
    # 100 equal tokens hold 93 grams of 8, and one distinct.
    assert repeated_share([5] * 100) == pytest.approx(92 / 93)
    # A loop of 10 tokens, 3 times: 23 grams, of which 10 are distinct.
    assert repeated_share(list(range(10)) * 3) == pytest.approx(13 / 23)
