"""How often a recording is drained while a view is visible."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.recorder.pump import INTERVAL_S, MOST_OF_TIME, WATCHED_INTERVAL_S, Pace


def pace_after(*seconds):
    pace = Pace(WATCHED_INTERVAL_S, INTERVAL_S)
    for each in seconds:
        pace.took(each)
    return pace


def test_before_the_first_drain_the_pause_is_the_shortest():
    assert pace_after().interval_s == WATCHED_INTERVAL_S


@given(st.floats(1e-6, 10))
def test_a_view_adds_drains_for_a_bounded_share_of_the_time(took_s):
    pause_s = pace_after(*[took_s] * 40).interval_s

    additional_per_s = 1 / pause_s - 1 / INTERVAL_S
    assert WATCHED_INTERVAL_S <= pause_s <= INTERVAL_S
    assert additional_per_s * took_s <= MOST_OF_TIME * 1.01


def test_a_single_drain_that_took_long_changes_nothing():
    usual = pace_after(*[0.002] * 40)
    pace = pace_after(*[0.002] * 39, 5, 0.002)

    assert pace.interval_s == pytest.approx(usual.interval_s, rel=1e-3)
