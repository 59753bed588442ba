"""What threads that launch do between their CUDA calls."""

import gc
import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

import gpuviz

# Each gap is repeated until it was looked at, because a busy machine may run the sampler late.
ENOUGH = 200
SHORT = 0.02


def recorded(between, until, **options):
    """Return a recording of gaps that do the same between two launches, with the last samples."""
    gpu = gpuviz.SimulatedGPU()
    with gpuviz.record(device=gpu, **options) as recorder:
        for _ in range(ENOUGH):
            gpu.launch("first", duration=1e-6)
            between()
            gpu.launch("second", duration=1e-6)
            found = samples(recorder.recording)
            if until(found):
                break
    return recorder.recording, found


def samples(recording):
    """Return the rows of ``host_samples`` with the functions of their stacks."""
    frames = {row["id"]: row for row in recording.table("frames").to_pylist()}
    stacks = {row["id"]: row["frames"] for row in recording.table("stacks").to_pylist()}
    names = {row["id"]: row["name"] for row in recording.table("threads").to_pylist()}
    return [
        row
        | {
            "functions": [frames[frame]["name"] for frame in stacks.get(row["stack"], [])],
            "name": names.get(row["thread"], ""),
            "holder": names.get(row["holder"], ""),
        }
        for row in recording.table("host_samples").to_pylist()
    ]


def is_in(function, state):
    return lambda rows: any(
        row["state"] == state and any(function in name for name in row["functions"]) for row in rows
    )


def pausing():
    time.sleep(SHORT)


def counting():
    for _ in range(400_000):
        pass


@pytest.mark.parametrize(("work", "state"), [(pausing, "waiting"), (counting, "working")])
def test_a_gap_has_the_function_that_ran(work, state):
    wanted = is_in(work.__name__, state)
    _, rows = recorded(work, wanted)

    assert wanted(rows)


def test_samples_lie_between_the_calls_of_their_thread_and_do_not_overlap():
    recording, _ = recorded(pausing, lambda rows: len(rows) > 3)
    calls = [row for row in recording.table("api_calls").to_pylist() if row["stack"]]
    rows = [row for row in samples(recording) if row["state"] != "collection"]

    assert {row["thread"] for row in rows} == {threading.get_native_id()}
    for row in rows:
        assert row["time"] <= row["end"]
        inside = [c for c in calls if c["time"] < row["end"] and c["end"] > row["time"]]
        assert not inside
    for before, after in itertools.pairwise(rows):
        assert before["end"] <= after["time"]


def test_a_collection_is_exact_and_has_the_line_that_began_it():
    trash = [[number] for number in range(100_000)]

    def collecting():
        gc.collect()

    wanted = is_in("collecting", "collection")
    _, rows = recorded(collecting, wanted)

    assert trash
    assert wanted(rows)
    assert not [row for row in gc.callbacks if "collection" in repr(row)]


def test_a_collection_in_a_thread_of_gpuviz_is_no_work_of_the_program():
    trash = [[number] for number in range(100_000)]
    with ThreadPoolExecutor(1, "gpuviz-test") as own, ThreadPoolExecutor(1, "other") as other:

        def collecting():
            own.submit(gc.collect).result()
            other.submit(gc.collect).result()

        recording, rows = recorded(collecting, lambda rows: "other_0" in threads_of(rows))

    assert trash
    assert rows
    assert not any(name.startswith("gpuviz-") for name in threads_of(samples(recording)))


def threads_of(rows):
    """Return the names of the threads that collected garbage."""
    return {row["name"] for row in rows if row["state"] == "collection"}


@contextmanager
def busy_thread():
    """Run a thread named "busy" that always wants the GIL."""
    stop = threading.Event()

    def keep_busy():
        while not stop.is_set():
            sum(range(1000))

    busy = threading.Thread(target=keep_busy, name="busy")
    busy.start()
    try:
        yield
    finally:
        stop.set()
        busy.join()


def test_a_thread_that_waits_for_the_gil_names_its_holder():
    with busy_thread():
        _, rows = recorded(
            lambda: [time.sleep(0) for _ in range(20)],
            lambda rows: any(row["state"] == "gil" and row["holder"] == "busy" for row in rows),
        )
    assert any(row["state"] == "gil" and row["holder"] == "busy" for row in rows)


def test_the_holder_of_the_gil_is_known_from_the_beginning():
    holders = []
    with busy_thread():
        for _ in range(ENOUGH):
            gpu = gpuviz.SimulatedGPU()
            with gpuviz.record(device=gpu) as recorder:
                gpu.launch("first", duration=1e-6)
                counting()
                gpu.launch("second", duration=1e-6)
            rows = samples(recorder.recording)
            holders += [row["holder"] for row in rows if row["state"] == "gil"]
            if len(holders) >= 10:
                break
    assert set(holders) <= {"busy", "gpuviz-pump", ""}
    # A lock that is just changing hands has no holder.
    assert holders.count("") <= len(holders) / 2
    assert holders


def test_functions_that_no_longer_exist_are_left_out():
    code = "def gone():\n    for _ in range(50_000):\n        pass\n"

    def once():
        space = {}
        exec(compile(code, "gone.py", "exec"), space)  # noqa: S102
        space["gone"]()

    _, rows = recorded(once, lambda rows: len(rows) > 2)

    for row in rows:
        functions = row["functions"] if row["stack"] else []
        inner = functions[: functions.index("once")] if "once" in functions else []
        known = ("gone", "<module>", "left out")
        assert all(any(name in function for name in known) for function in inner), inner


@pytest.mark.parametrize(
    "options", [{"host_samples": False}, {"stacks": False}, {"streams": False}]
)
def test_nothing_is_sampled_unless_asked_for(options):
    recording, rows = recorded(pausing, lambda _: True, **options)

    assert rows == []
    assert recording.table("host_samples").num_rows == 0


def test_a_simulated_clock_has_no_samples():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.launch("first", duration=1e-6)
        time.sleep(SHORT)
        gpu.launch("second", duration=1e-6)

    assert recorder.recording.table("host_samples").num_rows == 0
