"""The iterations of programs with known loops, and their numbers against those of windows."""

from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz import commands
from gpuviz.analysis.periods import repeats
from gpuviz.recording import load
from tests.examples import examples
from tests.unit.recording.from_activities import Timeline

SHIPPED = Path(commands.__file__).parent / "recordings"
LOOPS = {
    "conjugate_gradient": 146,
    "fft_filter": 64,
    "image_pipeline": 24,
    "kmeans": 360,
    "monte_carlo": 200,
}


def shipped(name):
    return load(SHIPPED / f"{name}.gpuviz")


def program(lines, ranges=(), *, step=100, lag=0):
    """Return the recording of a program whose lines each launch one kernel."""
    timeline = Timeline()
    for number, line in enumerate(lines, 1):
        begin = step * number
        timeline.call(begin, begin + 10, line=line, correlation=number)
        ran = begin + 20 + lag * number
        timeline.kernel(ran, ran + 50, f"kernel_{number % 7}", correlation=number)
    for number, (name, time, end, thread) in enumerate(ranges, 1):
        row = {"id": number, "time": time, "end": end, "thread": thread, "kind": "range"}
        timeline.add("ranges", row | {"name": timeline.text(name)})
    return timeline.recording(duration_ns=step * (len(lines) + 1) + lag * len(lines))


@pytest.mark.parametrize(("name", "count"), LOOPS.items())
def test_the_loops_of_the_workloads_are_found(name, count):
    found = shipped(name).iterations()

    assert found.num_rows == count
    assert found["number"].to_pylist() == list(range(1, count + 1))
    assert found["end"].to_pylist()[:-1] == found["start"].to_pylist()[1:]


@examples(60)
@given(
    body=st.lists(st.integers(1, 6), min_size=2, max_size=12).filter(lambda body: len({*body}) > 1),
    count=st.integers(5, 30),
    before=st.lists(st.integers(20, 24), max_size=5),
    after=st.lists(st.integers(20, 24), max_size=5),
    data=st.data(),
)
def test_a_loop_with_an_odd_launch_is_found(body, count, before, after, data):
    body = [*body, 7]
    lines = body * count
    if len(body) > 3:
        lines.insert(data.draw(st.integers(1, len(lines) - len(body))), 9)

    recording = program(before + lines + after)

    found = recording.iterations()
    assert found.num_rows >= count - 1
    assert set(found["kernel_count"].to_pylist()) <= {len(body), len(body) + 1}


def test_warm_up_and_logging_leave_the_steps_alone():
    step = [1, 2, 3, 4, 4, 4, 5]
    steps = [step + ([8] if number % 10 == 9 else []) for number in range(50)]
    lines = [30, 31, 1, 2, 31, *chain.from_iterable(steps), 40, 41]

    found = program(lines).iterations()

    assert found["kernel_count"].to_pylist() == list(map(len, steps))
    assert found["start"][0].as_py() == 600


@pytest.mark.parametrize("launches", [[1] * 25, [1, 1, 1, 2, 2, 2]])
def test_a_loop_around_lines_that_launch_again_and_again_is_found(launches):
    step = [*launches, 3]

    assert program(step * 20).iterations()["kernel_count"].to_pylist() == [len(step)] * 20


def test_the_steps_of_a_model_whose_layers_repeat_in_one_line_are_found():
    timeline, time, kinds = Timeline(), 0, ["kernel", "memset"] * 6 + ["kernel"] * 4
    for step in range(12):
        for place, kind in enumerate(kinds):
            time += 100
            number = step * len(kinds) + place + 1
            timeline.call(time, time + 10, line=1 if kind == "memset" or place < 12 else 2,
                          correlation=number)  # fmt: skip
            timeline.activity(kind, time + 20, time + 70, correlation=number)

    found = timeline.recording(duration_ns=time + 200).iterations()

    assert found["kernel_count"].to_pylist() == [10] * 12


def test_steps_are_iterations_although_every_tenth_one_reduces_much():
    step = [1, 1, 1, 1, 2]
    steps = [step + ([3] * 6 if number % 10 == 9 else []) for number in range(63)]

    found = program([*chain.from_iterable(steps)]).iterations()

    assert found["kernel_count"].to_pylist() == list(map(len, steps))


def test_of_nested_loops_the_outer_one_is_found():
    outer = [1, 2, 3] + [4, 5] * 6 + [6]

    assert program(outer * 8).iterations()["kernel_count"].to_pylist() == [len(outer)] * 8


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [1],
        [1] * 50,
        [*range(50)],
        [1, 2] * 2,
        [1, 2, 3] * 2,
        [*range(1, 60), 1, 2, 1, 2, 1, 2],
        [1, 2, 3] * 2 + [*range(10, 40)],
    ],
    ids=lambda lines: f"{len(lines)} {lines[:3]}",
)
def test_a_program_without_a_loop_has_no_iterations(lines):
    assert program(lines).iterations().num_rows == 0


@examples(100)
@given(
    lines=st.integers(2, 6),
    # Shorter ones of two lines repeat by chance; one of 20 was found.
    count=st.integers(60, 200),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_random_sequence_has_no_iterations(lines, count, seed):
    sequence = np.random.default_rng(seed).integers(1, 1 + lines, count)

    assert program(sequence.tolist()).iterations().num_rows == 0


@examples(60)
@given(seed=st.integers(0, 2**32 - 1), first=st.integers(2, 5), second=st.integers(2, 5))
def test_loops_that_interleave_at_random_have_no_iterations(seed, first, second):
    loops = [iter([*range(1, 1 + first)] * 40), iter([*range(10, 10 + second)] * 40)]
    random = np.random.default_rng(seed)

    lines = [next(loops[which]) for which in random.integers(0, 2, 60)]

    assert program(lines).iterations().num_rows == 0


def test_launches_without_lines_have_no_iterations():
    assert program([None, None, None] * 20).iterations().num_rows == 0


def test_a_recording_without_a_device_has_no_iterations():
    assert Timeline().recording().iterations().num_rows == 0


def test_ranges_that_repeat_are_the_iterations():
    steps = [("step", 100 * n, 100 * n + 90, 1) for n in range(1, 41)]
    inner = [("part", 100 * n + 5, 100 * n + 40, 1) for n in range(1, 41)]

    found = program([1, 2] * 20, inner + steps).iterations()

    assert set(found["name"].to_pylist()) == {"step"}
    assert found["start"].to_pylist() == [time for _, time, *_ in steps]
    assert found["end"].to_pylist() == [end for *_, end, _ in steps]
    assert found["kernel_count"].to_pylist() == [1] * 40


def test_of_nested_ranges_the_outer_ones_are_the_iterations():
    outer = [("epoch", 1000 * n, 1000 * n + 990, 1) for n in range(4)]
    inner = [("step", 100 * n, 100 * n + 80, 1) for n in range(40)]

    found = program([1, 2] * 20, inner + outer).iterations()

    assert found["name"].to_pylist() == ["epoch"] * 4


@pytest.mark.parametrize(
    "ranges",
    [
        [("step", 100, 900, 1), ("step", 1000, 1900, 1)],
        [("step", 100 * n, 100 * n + 1, 1) for n in range(1, 5)],
        [("step", 100 * n, 1000, 1) for n in range(1, 5)],
        [("step", 100 * n, -1, 1) for n in range(1, 5)],
        [("step", 100 * n, 100 * n + 90, n) for n in range(1, 40)],
    ],
    ids=["two", "little of the time", "nested in each other", "open", "of other threads"],
)
def test_ranges_that_do_not_repeat_are_not_iterations(ranges):
    assert program([*range(1, 41)], ranges).iterations().num_rows == 0


def test_iterations_begin_on_the_gpu_if_the_host_runs_ahead():
    recording = program([1, 2, 3] * 10, lag=400)

    found = recording.iterations()

    ran = recording.table("activities")["time"].to_pylist()
    called = recording.table("api_calls")["time"][0].as_py()
    assert found["start"].to_pylist() == [called, *ran[3::3]]
    assert found["kernel_count"].to_pylist() == [3] * 10


@pytest.mark.parametrize("name", LOOPS)
def test_the_numbers_are_those_of_a_window(name):
    recording = shipped(name)
    levels = recording.memory_levels
    times, allocated = (levels[each].to_numpy() for each in ("time", "allocated"))
    rows = recording.iterations().to_pylist()
    for row in rows[:: max(1, len(rows) // 6)]:
        start, end = row["start"], row["end"]
        part = recording.window(start, end)
        waits = recording.derived["host_waits"].to_pylist()
        (device,) = recording.overlap(start=start, end=end).devices

        assert row["busy_ns"] == device.busy_ns
        assert row["wait_ns"] == sum(part.synchronizations()["total_ns"].to_pylist())
        assert row["wait_ns"] == sum(
            max(0, min(wait["end"], end) - max(wait["time"], start)) for wait in waits
        )
        first = np.searchsorted(times, start, side="right") - 1
        inside = allocated[first:][times[first:] <= end]
        assert row["peak_bytes"] == inside.max()
        assert row["duration_ns"] == end - start


@pytest.mark.parametrize("name", LOOPS)
def test_the_work_is_that_launched_by_the_host_in_the_iteration(name):
    recording = shipped(name)
    calls = {row["correlation"]: row for row in recording.table("api_calls").to_pylist()}
    work = [row for row in recording.table("activities").to_pylist() if row["kind"] != "range"]
    found = recording.iterations().to_pylist()
    called = [calls[row["correlation"]]["time"] for row in work if row["correlation"] in calls]

    kernels = sum(row["kind"] in ("kernel", "graph") for row in work)
    assert sum(row["kernel_count"] for row in found) <= kernels
    assert sum(row["kernel_count"] for row in found) > 0.5 * kernels
    if name != "fft_filter":
        return
    for row in found:
        launched = [
            each
            for each, time in zip(work, called, strict=True)
            if row["start"] <= time < row["end"]
        ]
        copies = [each for each in launched if each["kind"] == "memcpy"]
        assert row["copy_bytes"] == sum(each["bytes"] for each in copies)
        assert row["copy_ns"] == sum(each["end"] - each["time"] for each in copies)


def test_iterations_of_a_window_lie_in_it():
    recording = shipped("kmeans")
    start, end = 60_000_000, 120_000_000

    found = recording.window(start, end).iterations().to_pylist()

    inside = [
        row
        for row in recording.iterations().to_pylist()
        if start <= row["start"] and row["end"] <= end
    ]
    assert found[0]["start"] >= start
    assert found[-1]["end"] <= end
    assert len(inside) - 5 <= len(found) <= len(inside)


@pytest.mark.parametrize("redact", [False, True])
def test_a_report_contains_the_iterations(tmp_path, redact, monkeypatch):
    recording = shipped("image_pipeline")
    expected = recording.iterations()
    loaded = load(recording.report(tmp_path / "run.html", redact=redact))

    monkeypatch.setattr("gpuviz.conclusions.store.iterations", None)
    assert loaded.iterations().equals(expected)
    assert loaded.table("iterations")["device"].to_pylist() == [0] * 24


def test_a_period_is_the_shortest_one():
    found = repeats(np.array([1, 2, 1, 2, 3] * 6 + [1, 2]), fewest=3)

    assert found is not None
    assert (found.length, len(found.starts), found.end) == (5, 6, 30)
