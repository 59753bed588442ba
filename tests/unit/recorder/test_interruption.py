"""Recordings that are interrupted at any step: every row is there once, and `stop` can be repeated.

A fault on the main thread stands for Ctrl-C, one on the pump's thread for want of memory.
"""

import os
import signal
import threading
import time
from itertools import count

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.recorder import pump
from gpuviz.recorder.recorder import Recorder
from tests.examples import share_of
from tests.faults import Fault

FAULTS = [
    ("MainThread", KeyboardInterrupt),
    ("gpuviz-pump", KeyboardInterrupt),
    ("gpuviz-pump", MemoryError),
]
ROOM = "/gpuviz/recorder/"
MOST_DRAINS, MOST_STOPS = share_of(1000), share_of(100)

# Between the end of a block and the close of its file, Python leaves that to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Program:
    """Allocates and launches, each time at a new call site with a new name."""

    def __init__(self):
        self.gpu = gpuviz.SimulatedGPU()
        self.rows = 0
        self._numbers = count()
        self._kept = []

    def run(self, rows=1):
        for number in [next(self._numbers) for _ in range(rows)]:
            line = "\n" * number + "kept.append(gpu.empty(512)); gpu.launch(name, duration=1e-6)"
            names = {"kept": self._kept, "gpu": self.gpu, "name": f"kernel {number}"}
            exec(compile(line, "program.py", "exec"), names)  # noqa: S102
            self.rows += 1

    def check(self, recorder, recording):
        """Check that all rows are there once; or counted, if memory was missing for them."""
        tables = {name: table.to_pylist() for name, table in recording.tables.items()}
        lost, lost_activities = recorder.status().dropped, recorder.status().dropped_activities
        lines = {row["id"]: row["line"] for row in tables["frames"]}
        innermost = {row["id"]: row["frames"][0] for row in tables["stacks"] if row["frames"]}
        allocs = [row for row in tables["memory_events"] if row["action"] == "alloc"]
        sites = [lines[innermost[row["stack"]]] for row in allocs]
        texts = {row["id"]: row["text"] for row in tables["strings"]}
        launched = [texts[row["name"]] for row in tables["activities"]]
        if lost == 0:
            assert sites == list(range(1, self.rows + 1))
        if lost_activities == 0:
            assert launched == [f"kernel {number}" for number in range(self.rows)]
        assert len(tables["memory_events"]) + lost == recorder.status().events
        for name in ("pools", "threads", "devices", "stacks", "frames", "strings", "activities"):
            ids = [row.get("id", row.get("correlation")) for row in tables[name]]
            assert len(ids) == len(set(ids))


@pytest.fixture(autouse=True)
def _only_calls_drain(monkeypatch):
    for name in ("FIRST_INTERVAL_S", "WATCHED_INTERVAL_S", "INTERVAL_S"):
        monkeypatch.setattr(pump, name, 3600)
    yield
    active = Recorder.active()
    if active is not None:
        active.stop()


def interrupted(fault, call, prepare, most):
    """Call at each line, or at this many, after a preparation, and yield after each call."""
    prepare()
    with fault.armed(0):
        call()
    calls = 0
    for line in fault.lines(step=max(1, fault.lines_run // most)):
        prepare()
        with fault.armed(line):
            call()
        calls += 1
        yield
    assert calls >= min(most // 2, 20)


@pytest.mark.parametrize(("thread", "kind"), FAULTS)
def test_a_drain_that_is_interrupted_at_any_line_is_resumed(thread, kind, tmp_path):
    fault = Fault(kind, ROOM, thread)
    program = Program()
    recorder = gpuviz.record(tmp_path / "run.gpuviz", device=program.gpu)
    recorder.start()

    def prepare():
        program.run()
        recorder._live.pump.submit(fault.follow)()

    for _ in interrupted(fault, recorder.read_statistics, prepare, MOST_DRAINS):
        recorder.read_statistics()

    program.check(recorder, recorder.recording)
    program.check(recorder, gpuviz.load(tmp_path / "run.gpuviz.part"))
    program.check(recorder, recorder.stop())
    program.check(recorder, gpuviz.load(tmp_path / "run.gpuviz"))
    assert recorder.statistics.events == recorder.recording.tables["memory_events"].num_rows


@pytest.mark.parametrize(("thread", "kind"), FAULTS)
def test_a_stop_that_is_interrupted_at_any_line_can_be_repeated(thread, kind, tmp_path):
    fault = Fault(kind, ROOM, thread)
    made = []

    def record():
        program, path = Program(), tmp_path / f"{len(made)}.gpuviz"
        recorder = gpuviz.record(path, device=program.gpu)
        recorder.start()
        recorder._live.pump.submit(fault.follow)()
        program.run(2)
        made.append((program, recorder, path))

    def stop():
        made[-1][1].stop()

    for _ in interrupted(fault, stop, record, MOST_STOPS):
        program, recorder, path = made[-1]
        program.check(recorder, recorder.stop())
        program.check(recorder, gpuviz.load(path))
        assert not path.with_suffix(".gpuviz.part").exists()


@pytest.mark.parametrize(("thread", "kind"), FAULTS)
def test_a_view_has_every_row_once_whatever_is_interrupted(thread, kind):
    fault = Fault(kind, ROOM, thread)
    program = Program()
    rows = []

    def show(message):
        if message.parts and message.part == 0:
            rows.clear()
        for name, stream in message.tables:
            if name == "memory_events":
                rows.extend(pa.ipc.open_stream(stream).read_all()["time"].to_pylist())

    def prepare():
        program.run()
        recorder._live.pump.submit(fault.follow)()

    recorder = gpuviz.record(device=program.gpu)
    recorder.start()
    recorder.subscribe(show)
    for _ in interrupted(fault, recorder.read_statistics, prepare, MOST_DRAINS):
        recorder.read_statistics()

    recording = recorder.stop()

    program.check(recorder, recording)
    assert rows == recording.tables["memory_events"]["time"].to_pylist()


@pytest.mark.filterwarnings("error")
def test_real_signals_lose_no_row(tmp_path):
    program = Program()
    recorder = gpuviz.record(tmp_path / "run.gpuviz", device=program.gpu)
    recorder.start()
    hit = 0

    def interrupt(delay_s):
        time.sleep(delay_s)
        os.kill(os.getpid(), signal.SIGINT)

    def interrupted_call(call, delay_s):
        nonlocal hit
        thread = threading.Thread(target=interrupt, args=(delay_s,))
        try:
            thread.start()
            call()
            thread.join()
            time.sleep(1)
        except KeyboardInterrupt:
            hit += 1

    for number in range(share_of(300)):
        program.run(3)
        interrupted_call(lambda: recorder.recording, 0.001 + number % 10 / 2000)
    interrupted_call(recorder.stop, 0.005)

    program.check(recorder, recorder.stop())
    program.check(recorder, gpuviz.load(tmp_path / "run.gpuviz"))
    assert hit == share_of(300) + 1
