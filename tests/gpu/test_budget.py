"""Streams that are recorded in windows: CUPTI detaches and attaches while a program runs."""

import time

import pytest

import gpuviz

pytestmark = pytest.mark.gpu

BUDGET = "5%"
# Attaching costs a tenth of a second at most, so that a second window is affordable by then.
LONGEST_S = 30
STREAMS = 2


def run(cp, recorder, after_step=lambda _: None):
    """Launch on several streams until streams were recorded in three windows; return the sum."""
    streams = [cp.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
    array, event, until = cp.zeros(1 << 12, cp.int64), cp.cuda.Event(), time.monotonic() + LONGEST_S
    steps = 0
    while time.monotonic() < until and recorder.recording.table("unrecorded_spans").num_rows < 3:
        for _ in range(500):
            with streams[0]:
                array += 1
                event.record()
            with streams[1]:
                streams[1].wait_event(event)
                array += 1
                event.record()
            streams[0].wait_event(event)
            steps += 2
        after_step(streams[0])
        streams[0].synchronize()
    return steps, int(array[0])


@pytest.fixture(scope="module")
def recorded():
    """Return the recording of a program, how often it added 1, and the sum."""
    cp = pytest.importorskip("cupy")
    with gpuviz.record(budget=BUDGET) as recorder:
        steps, total = run(cp, recorder)
    return recorder.recording, steps, total


def test_the_program_computes_the_same(recorded):
    _, steps, total = recorded

    assert total == steps


def test_calls_and_streams_have_one_numbering(recorded):
    recording, _, _ = recorded
    calls = recording.table("api_calls")["correlation"].to_pylist()
    streams = recording.table("streams").to_pylist()
    used = {each for each in recording.table("activities")["stream"].to_pylist() if each}

    assert recording.table("unrecorded_spans").num_rows >= 2
    assert len(calls) == len(set(calls))
    handles = [row["handle"] for row in streams if row["id"] in used]
    assert len(handles) == len(set(handles)) == STREAMS + 1


def test_what_was_launched_in_a_window_has_its_work(recorded):
    recording, _, _ = recorded
    unseen = recording.table("unseen_spans").to_pylist()
    work = set(recording.table("activities")["correlation"].to_pylist())
    names = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    launches = [
        row
        for row in recording.table("api_calls").to_pylist()
        if names[row["name"]].startswith("cuLaunchKernel")
        and not any(span["time"] <= row["time"] < span["end"] for span in unseen)
    ]

    assert len(launches) > 1000
    assert all(row["correlation"] in work for row in launches)
    lane = recording.overlap().devices[0]
    assert 0 < lane.busy <= 1
    assert lane.unseen_ns > 0
    assert any("streams were recorded in" in note for note in recording.notes)


def test_captures_go_on_while_windows_begin_and_end():
    cp = pytest.importorskip("cupy")
    ran = []

    def capture(stream):
        with stream:
            array = cp.zeros(16)
            stream.begin_capture()
            # A window may begin or end meanwhile.
            for _ in range(20):
                array += 1
                time.sleep(0.01)
            graph = stream.end_capture()
            graph.launch(stream)
            ran.append(float(array[0]))

    with gpuviz.record(budget=BUDGET) as recorder:
        run(cp, recorder, capture)

    assert set(ran) == {20.0}
