"""Findings about calls that blocked the host."""

from gpuviz.report.findings import findings, nothing_found
from gpuviz.report.summary import headline, summarize
from tests.unit.recording.from_activities import Timeline
from tests.unit.report.recordings import Events, make_recording

PAGEABLE = {"copy_kind": "device_to_host", "destination": "pageable"}


def copy_of_pageable_memory(timeline, line, correlation, begin):
    """Add a call from 10 to 130 ns, whose copy begins at a time."""
    timeline.call(10, 130, "cuMemcpyDtoHAsync_v2", line=line, correlation=correlation)
    timeline.copy(begin, begin + 5, correlation=correlation, **PAGEABLE)


def found(timeline):
    recording = timeline.recording(duration_ns=1000)
    return [
        (each.title, [(line.source, line.amount) for line in each.lines])
        for each in findings(recording, summarize(recording, 0))
    ]


def test_staging_of_pageable_memory_is_found_with_its_lines():
    timeline = Timeline()
    copy_of_pageable_memory(timeline, 1, 7, begin=100)
    copy_of_pageable_memory(timeline, 2, 8, begin=50)

    assert found(timeline) == [
        (
            "2 asynchronous copies of pageable memory blocked the host for 110 ns.",
            [
                ("line 2", "cuMemcpyDtoHAsync_v2, 1 time, 80 ns"),
                ("line 1", "cuMemcpyDtoHAsync_v2, 1 time, 30 ns"),
            ],
        )
    ]


def test_a_copy_that_only_waited_for_earlier_work_is_a_synchronizing_call():
    timeline = Timeline()
    copy_of_pageable_memory(timeline, 1, 7, begin=130)

    assert found(timeline) == [
        (
            "Synchronizing calls blocked the host 1 time, for 120 ns in total.",
            [("line 1", "cuMemcpyDtoHAsync_v2, 1 time, 120 ns")],
        )
    ]


def test_calls_that_took_no_time_are_no_finding():
    timeline = Timeline()
    timeline.call(10, 10, "cuMemcpyDtoHAsync_v2", line=1, correlation=7)
    timeline.copy(10, 15, correlation=7, **PAGEABLE)
    timeline.call(20, 20, "cuStreamSynchronize", line=2, correlation=8)

    assert found(timeline) == []


def test_what_was_not_recorded_is_not_said_to_be_fine():
    events = Events()
    events.add("alloc", 1 << 40, 512, time=10)
    events.add("free_completed", 1 << 40, 512, time=20)
    of_rmm = make_recording(events.rows, initial_events=0, allocator="observe")
    timeline = Timeline()
    timeline.kernel(0, 10)
    timeline.call(0, 5, "cuLaunchKernel")

    (nothing,) = {nothing_found(of_rmm, summarize(of_rmm, 0))}
    activities = timeline.recording()

    assert nothing == (
        "No findings: no allocation failed, and nothing was still allocated at the end. "
        "Not recorded: segments of memory and CUDA calls."
    )
    assert "no call blocked the host" in nothing_found(activities, summarize(activities, 0))


def test_an_unknown_free_memory_of_the_device_is_not_zero():
    events = Events()
    events.add("oom", 0, 512, time=10)
    of_rmm = make_recording(events.rows, initial_events=0, allocator="observe")
    own = make_recording(events.rows, initial_events=0)

    details = [findings(each, summarize(each, 0))[0].detail for each in (of_rmm, own)]

    assert details == [
        "The first requested 512 B at 10 ns.",
        "The first requested 512 B at 10 ns, when 0 B of the device were free.",
    ]


def test_the_time_of_a_blocked_host_is_unknown_without_its_calls():
    timeline = Timeline()
    timeline.kernel(0, 10)
    recording = timeline.recording()

    numbers = headline(recording, summarize(recording, 0))

    blocked = next(number for number in numbers if number.name == "Host blocked")
    assert (blocked.value, blocked.detail) == ("unknown", "CUDA calls were not recorded")
