"""The table of lines, against plain Python and against the tables of single kinds."""

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import gpuviz
from gpuviz import commands
from tests.examples import examples
from tests.unit.recording.from_activities import Timeline
from tests.unit.recording.plain_summary import NO_STACK, activity_rows, call_place, groups

SHIPPED = sorted((Path(commands.__file__).parent / "recordings").glob("*.gpuviz"))
TIMES = ("kernel_ns", "copy_ns", "wait_ns", "idle_ns")
NAMES = ["cuLaunchKernel", "cuStreamSynchronize", "cuMemAlloc_v2"]


@st.composite
def any_program(draw):
    """Kernels, copies and calls of three lines on two devices, some without a call."""
    timeline = Timeline()
    for correlation in range(1, draw(st.integers(1, 10))):
        kind = draw(st.sampled_from(["kernel", "memcpy", "memset", "graph", "range"]))
        time = draw(st.integers(0, 40))
        columns = {
            "correlation": draw(st.sampled_from([0, correlation])),
            "bytes": 1 << correlation,
        }
        columns["device"] = draw(st.integers(0, 1))
        timeline.activity(kind, time, time + draw(st.integers(-2, 9)), **columns)
        if draw(st.booleans()):
            begin, line = draw(st.integers(0, 40)), draw(st.none() | st.integers(1, 3))
            name = draw(st.sampled_from(NAMES))
            timeline.call(begin, begin + 3, name, correlation=correlation, line=line)
    return timeline.recording()


def plain_account(recording, device):
    """Return the sums of each line by name."""
    sums = defaultdict(lambda: dict.fromkeys([*TIMES, "kernel_count", "copy_bytes"], 0))
    activities = recording.table("activities").to_pylist()
    calls = recording.table("api_calls").to_pylist()

    def add(site, row, **amounts):
        if row["device"] in {device, -1} or device is None:
            for name, amount in amounts.items():
                sums[site][name] += amount

    for row in (row for kind in ("kernel", "graph") for row in activity_rows(recording, kind)):
        add(row["site"], row, kernel_ns=row["length"], kernel_count=1)
    for row in activity_rows(recording, "memcpy"):
        add(row["site"], row, copy_ns=row["length"], copy_bytes=row["bytes"])
    for gap in recording.table("idle_gaps").to_pylist():
        if gap["stream"] == 0 and gap["activity"] >= 0:
            launch = activities[gap["activity"]]["correlation"]
            known = (call for call in calls if call["correlation"] == launch != 0)
            site = call_place(recording, next(known, None))["site"]
            add(site, gap, idle_ns=gap["end"] - gap["time"])
    for wait in recording.table("host_waits").to_pylist():
        site = call_place(recording, wait if wait["stack"] else None)["site"]
        add(site, wait, wait_ns=wait["end"] - wait["time"])
    return sums


@examples(40)
@given(recording=any_program(), device=st.none() | st.integers(0, 1))
def test_the_numbers_are_those_of_a_plain_account(recording, device):
    assume(device in {None, *recording.devices})

    found = {row["site"]: row for row in recording.lines(device).to_pylist()}

    expected = plain_account(recording, device)
    assert found.keys() == expected.keys()
    for site, numbers in expected.items():
        assert {name: found[site][name] for name in numbers} == numbers


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_lines_add_up_to_the_tables_of_single_kinds(path):
    recording = gpuviz.load(path)
    lines = recording.lines()
    by_site = {row["site"]: row for row in lines.to_pylist()}
    work = recording.table("activities").to_pylist()
    lengths = groups(work, lambda row: row["kind"])

    assert {site: row["live_bytes"] for site, row in by_site.items() if row["total_count"]} == {
        row["site"]: row["live_bytes"] for row in recording.sites("line").to_pylist()
    }
    for row in recording.kernels("line").to_pylist():
        assert by_site[row["site"]]["kernel_ns"] == row["total_ns"]
        assert by_site[row["site"]]["kernel_count"] == row["count"]
    assert sum(lines["wait_ns"].to_pylist()) == sum(
        recording.synchronizations()["total_ns"].to_pylist()
    )
    assert sum(lines["copy_ns"].to_pylist()) == sum(
        row["end"] - row["time"] for row in lengths.get("memcpy", ())
    )
    assert sum(lines["copy_bytes"].to_pylist()) == sum(recording.copies()["bytes"].to_pylist())
    assert sum(lines["idle_ns"].to_pylist()) == sum(
        device.idle_ns for device in recording.overlap().devices
    )


def test_two_windows_have_the_time_of_both_together():
    recording = gpuviz.load(next(path for path in SHIPPED if path.stem == "image_pipeline"))
    middle = recording.duration_ns // 2
    halves = [recording.window(0, middle), recording.window(middle, recording.duration_ns)]
    # In a window the gaps reach its bounds, so the idle time of a half is longer.
    names = [name for name in TIMES if name != "idle_ns"]

    sums = [sum(sum(half.lines()[name].to_pylist()) for half in halves) for name in names]

    assert sums == [sum(recording.lines()[name].to_pylist()) for name in names]


def test_what_holds_most_at_the_peak_comes_first():
    recording = gpuviz.load(next(path for path in SHIPPED if path.stem == "image_pipeline"))

    held = recording.lines()["live_bytes"].to_pylist()

    assert held == sorted(held, reverse=True)
    assert sum(held) == recording.peak().bytes


def test_what_has_no_call_stack_is_one_row():
    timeline = Timeline()
    timeline.kernel(0, 10)
    timeline.copy(10, 15, bytes=4)
    timeline.activity("memset", 15, 35, bytes=1234)

    (row,) = timeline.recording().lines().to_pylist()

    assert (row["site"], row["stack"]) == (NO_STACK, 0)
    assert (row["kernel_ns"], row["kernel_count"]) == (10, 1)
    assert (row["copy_ns"], row["copy_bytes"]) == (5, 4)


def test_a_recording_without_anything_has_no_lines():
    assert Timeline().recording().lines().num_rows == 0


def test_an_unknown_device_is_refused():
    timeline = Timeline()
    timeline.kernel(0, 10)

    with pytest.raises(ValueError, match="no device 3"):
        timeline.recording().lines(3)
