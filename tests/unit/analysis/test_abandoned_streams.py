"""Streams that serve one piece of work each, against a brute-force search."""

from random import Random

import pytest

import gpuviz
from gpuviz.analysis.abandoned_streams import IN_TURN, abandoned_streams, in_turn


def recorded(order, waits, long=()):
    """Return the recording of allocations and work on streams, in an order.

    Args:
        order: The numbers of the streams.
        waits: Whether the host waits for each piece of work.
        long: The streams whose work takes as long as that of six others, and is not waited for.
    """
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        streams = [gpu.Stream(non_blocking=True) for _ in range(max(order) + 1)]
        for number in order:
            with streams[number] as stream:
                duration = 6e-3 if number in long else 1e-3
                gpu.launch("work", duration=duration, share=0.01, writes=[gpu.empty(4096)])
            if waits and number not in long:
                stream.synchronize()
    return recorder.recording


def one_after_another(recording):
    """Return the streams during whose allocations no other stream begins, in their order."""
    used = [
        row["stream"]
        for row in recording.tables["memory_events"].to_pylist()
        if row["action"] == "alloc"
    ]
    begins = {stream: used.index(stream) for stream in used}
    ends = {stream: len(used) - 1 - used[::-1].index(stream) for stream in used}
    return [
        stream
        for stream in sorted(begins, key=begins.get)
        if not any(begins[stream] < begins[other] <= ends[stream] for other in begins)
    ]


@pytest.mark.parametrize("seed", range(8))
def test_streams_are_those_that_take_over_from_one_another(seed):
    random = Random(seed)
    order = [number for number in range(16) for _ in range(random.randint(1, 3))]
    for _ in range(random.randint(0, 6)):
        order.insert(random.randint(0, len(order)), random.randint(0, 15))
    recording = recorded(order, waits=True)

    expected = one_after_another(recording)
    found = abandoned_streams(recording, 0).tolist()

    assert found == (expected if len(expected) >= 2 * IN_TURN else [])


def test_few_streams_and_such_that_work_at_once_are_not_abandoned():
    for order, waits in ((range(2 * IN_TURN - 1), True), (range(16), False)):
        assert abandoned_streams(recorded(order, waits=waits), 0).tolist() == []


@pytest.mark.parametrize(("long", "expected"), [(0, 0), (3, 0), (7, 0), (12, 16), (15, 16)])
def test_no_work_would_wait_for_a_long_piece(long, expected):
    recording = recorded(range(16), waits=True, long=[long])

    assert len(abandoned_streams(recording, 0)) == expected


def test_the_first_ones_do_the_work_of_all_in_turn():
    recording = recorded(range(10), waits=True)
    known = recording.tables["streams"]
    handles = dict(zip(known["id"].to_pylist(), in_turn(recording, 0).tolist(), strict=True))
    own = dict(zip(known["id"].to_pylist(), known["handle"].to_pylist(), strict=True))
    streams = abandoned_streams(recording, 0).tolist()

    assert [handles[each] for each in streams] == [own[streams[i % IN_TURN]] for i in range(10)]
