"""What holds the memory that is in use when a recording ends."""

import sys
import threading

import pytest

import gpuviz
from gpuviz.conclusions.facts import other_facts
from gpuviz.ownership.held_at_end import held_at_end

MIB = 1 << 20

pytestmark = pytest.mark.usefixtures("search_for_holders")


class Model:
    """An object with arrays."""

    def __init__(self, gpu):
        self.weights = [gpu.empty(4 * MIB) for _ in range(3)]


@pytest.fixture
def gpu():
    return gpuviz.SimulatedGPU(real_time=False)


@pytest.fixture
def recording(gpu, monkeypatch):
    """Record arrays held by a variable of the program, by a function's, and by none any more."""
    monkeypatch.setattr(sys.modules["__main__"], "cache", {}, raising=False)
    with gpuviz.record(device=gpu) as recorder:
        model = Model(gpu)
        sys.modules["__main__"].cache["last"] = gpu.empty(2 * MIB)
        small = gpu.empty(1234)
        gone = gpu.empty(3 * MIB)
        del gone
    assert (len(model.weights), small.nbytes) == (3, 1234)
    return recorder.recording


def held(recording):
    return [row["holder"] for row in recording.table("held_blocks").to_pylist()]


def live(recording):
    """Return the addresses of the blocks that are live at the end, by size."""
    blocks = recording.memory_snapshot(at=recording.duration_ns)[0]["blocks"]
    return {each["address"]: each["size"] for each in blocks if each["state"] != "inactive"}


def test_a_recording_says_what_holds_large_blocks_at_its_end(recording):
    rows = recording.table("held_blocks").to_pylist()

    assert sorted(row["holder"] for row in rows) == [
        "cache['last']",
        *(f"model.weights[{number}] in recording()" for number in range(3)),
    ]
    sizes = {row["holder"]: live(recording)[row["address"]] for row in rows}
    assert sizes["cache['last']"] == 2 * MIB
    assert recording.table("memory_events")["action"].to_pylist().count("snapshot") == 0


def test_the_fact_about_the_end_names_the_holders(recording):
    (fact,) = [each for each in other_facts(recording) if "at the end" in each.title]

    assert fact.reason == (
        "Known holders of large blocks: `model.weights[…] in recording()` and `cache['last']`."
    )


def test_a_window_that_ends_earlier_and_a_redacted_report_do_not_say_it(recording, tmp_path):
    begin, end = recording.time_range
    path = recording.report(tmp_path / "report.html", redact=True)

    assert held(recording.window(begin, end)) == held(recording)
    assert held(recording.window(begin, end - 1)) == []
    assert held(gpuviz.load(path)) == []


def test_a_block_whose_address_another_gpu_uses_too_has_no_holder(gpu):
    other = gpuviz.SimulatedGPU(real_time=False)
    elsewhere = other.empty(2 * MIB)
    with gpuviz.record(device=gpu) as recorder:
        kept = gpu.empty(2 * MIB)

    assert kept.ptr == elsewhere.ptr
    assert held(recorder.recording) == []


def test_a_block_with_a_hidden_holder_has_no_row(gpu, tmp_path):
    with gpuviz.record(tmp_path / "run.gpuviz", device=gpu) as recorder:
        kept = gpu.empty(4 * MIB)
        # A list iterator of a running `for` refers to the list from the evaluation stack.
        for _ in [gpu.empty(2 * MIB)]:
            del _
            recorder.stop()

    assert kept.nbytes == 4 * MIB
    assert held(gpuviz.load(tmp_path / "run.gpuviz")) == [
        "kept in test_a_block_with_a_hidden_holder_has_no_row()"
    ]


@pytest.fixture
def frequent_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("frequent_switches")
def test_other_threads_make_tuples_while_the_end_is_searched(gpu):
    stop, failures = threading.Event(), []

    def churn():
        try:
            while not stop.is_set():
                tuple(each for each in range(1000))
        except SystemError as error:
            failures.append(error)

    threads = [threading.Thread(target=churn) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        with gpuviz.record(device=gpu) as recorder:
            kept = gpu.empty(4 * MIB)
        for _ in range(20):
            held_at_end()
    finally:
        stop.set()
        for thread in threads:
            thread.join()

    assert kept.nbytes == 4 * MIB
    assert held(recorder.recording)
    assert failures == []
