"""Findings about calls that blocked the host."""

from gpuviz.report.findings import findings
from gpuviz.report.summary import summarize
from tests.unit.recording.from_activities import Timeline

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
