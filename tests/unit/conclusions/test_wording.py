"""What a finding saves, in words."""

from dataclasses import replace

import pytest

from gpuviz.advice.finding import Finding
from gpuviz.conclusions.wording import saving, short_saving

MIB, MS = 1 << 20, 1_000_000


@pytest.mark.parametrize(
    ("size", "time_ns", "said"),
    [
        (64 * MIB, 20 * MS, "64.0 MiB of the peak and about 20.0 ms, 20 % of the time"),
        (64 * MIB, MS // 20, "64.0 MiB of the peak"),
        (1 << 10, 20 * MS, "about 20.0 ms, 20 % of the time"),
        # Both are small, or nothing else is known.
        (1 << 10, MS // 20, "1.00 KiB of the peak and about 50.0 µs, 0.1 % of the time"),
        (0, MS // 20, "about 50.0 µs, 0.1 % of the time"),
        (1 << 10, 0, "1.00 KiB of the peak"),
    ],
)
def test_of_memory_and_time_the_one_that_says_nothing_is_left_out(size, time_ns, said):
    finding = Finding(
        rule="R08",
        title="",
        reason="",
        change="",
        certainty="likely",
        device=0,
        saved_bytes=size,
        further_bytes=size,
        saved_ns=time_ns,
        further_ns=time_ns,
        working_ns=100 * MS,
    )

    assert saving(finding) == said


@pytest.mark.parametrize(
    ("peak", "said"),
    [
        (100 * MIB, "64.0 MiB of the peak and about 20.0 ms, 20 % of the time"),
        (1000 * MIB, "about 20.0 ms, 20 % of the time, and 64.0 MiB of the peak"),
        (0, "64.0 MiB of the peak and about 20.0 ms, 20 % of the time"),
    ],
)
def test_of_memory_and_time_the_larger_part_of_the_program_s_comes_first(peak, said):
    finding = Finding("R61", "Title.", "", "", "likely", 0, 64 * MIB, 20 * MS)
    finding = replace(finding, further_bytes=64 * MIB, further_ns=20 * MS)
    finding = replace(finding, working_ns=100 * MS, peak_bytes=peak)

    assert saving(finding) == said
    assert said.startswith((short_saving(finding), f"about {short_saving(finding)}"))


def test_what_saves_more_once_others_are_followed_says_so():
    more = Finding("R45", "Title.", "", "", "likely", 0, saved_bytes=MIB, further_bytes=3 * MIB)

    assert saving(more) == (
        "1.00 MiB of the peak (3.00 MiB once those that save more are followed)"
    )


@pytest.mark.parametrize(
    ("size", "further", "said"),
    [
        (0, 600 * MIB, ", and 600 MiB of the peak once those that save more are followed"),
        (1 << 10, 600 * MIB, ", and 600 MiB of the peak once those that save more are followed"),
        (0, MIB, ""),
        (0, 0, ""),
    ],
)
def test_a_peak_that_is_as_high_elsewhere_is_lower_once_others_are_followed(size, further, said):
    finding = Finding("R08", "Title.", "", "", "likely", 0, size, 20 * MS)
    finding = replace(finding, further_bytes=further, further_ns=20 * MS, working_ns=100 * MS)

    assert saving(finding) == f"about 20.0 ms, 20 % of the time{said}"


@pytest.mark.parametrize(
    ("size", "time_ns", "said"),
    [
        (64 * MIB, 20 * MS, "64.0 MiB"),
        (4 * MIB, 20 * MS, "20.0 ms"),
        (4 * MIB, MS // 2, "4.00 MiB"),
        (0, MS // 2, "500 µs"),
        (4 * MIB, 0, "4.00 MiB"),
        (0, 0, ""),
    ],
)
def test_of_memory_and_time_the_short_form_has_the_one_that_is_worth_showing(size, time_ns, said):
    finding = Finding("R49", "Title.", "", "", "likely", 0, saved_bytes=size, saved_ns=time_ns)

    assert short_saving(replace(finding, working_ns=100 * MS)) == said
