"""Busy and idle time without what a program does only once, and without time between cells."""

from pathlib import Path

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.conclusions.wording import left_out
from gpuviz.data.manifest import Manifest
from gpuviz.recording import Recording
from tests.unit.advice.timed_programs import timed, with_cells
from tests.unit.recording.from_activities import Timeline, rows_of

MS = 1_000_000
SHIPPED = sorted((Path(gpuviz.__file__).parent / "commands" / "recordings").glob("*.gpuviz"))


def steps(gpu, *, prepare=None):
    gpu.launch("start", duration=1e-3)
    gpu.synchronize()
    for step in range(30):
        name = f"filter_{step % 3}"
        if prepare is not None and step < 3:
            prepare(gpu, name)
        gpu.launch(name, duration=1e-3)
        gpu.work_on_host(2e-3)
        gpu.synchronize()


def compiled(gpu, name):
    gpu.compile(name, duration=50e-3)


def loaded(gpu, name):
    gpu.compile(name, duration=4e-3, cached=True)


def worked(gpu, _name):
    gpu.work_on_host(50e-3)


def state_of(prepare):
    return timed(lambda gpu: steps(gpu, prepare=prepare)).steady_state()


@pytest.mark.parametrize(("prepare", "kind", "each"), [(compiled, 0, 50), (loaded, 1, 4)])
def test_what_is_prepared_is_left_out_and_the_rest_is_the_prepared_program(prepare, kind, each):
    prepared = timed(steps).steady_state()
    state = state_of(prepare)

    assert state.warm_up_ns[kind] == pytest.approx(3 * each * MS, rel=0.02)
    assert state.duration_ns == pytest.approx(prepared.duration_ns, rel=0.02)
    assert state.busy == pytest.approx(prepared.busy, rel=0.02)
    assert state.causes_ns["host"] == pytest.approx(prepared.causes_ns["host"], rel=0.02)


def test_work_of_the_host_before_the_first_launch_of_a_kernel_is_not_left_out():
    state = state_of(worked)

    assert state.duration_ns > 150 * MS
    assert state.left_out_ns < MS
    assert left_out(state) == ""


def test_what_is_left_out_is_given_by_cause():
    states = [state_of(prepare) for prepare in (compiled, loaded)]

    assert [left_out(each) for each in states] == [
        "without 150 ms of warm-up (150 ms compilation)",
        "without 12.0 ms of warm-up (12.0 ms module loading)",
    ]


def library_call(line):
    """Return a recording of a kernel, loads and host work by the same or another line, a kernel."""
    timeline = Timeline()
    timeline.call(0, 10, correlation=1, line=1)
    timeline.kernel(10, 20, "first", correlation=1)
    timeline.call(100, 200, "cuLibraryLoadData", correlation=2, line=2)
    timeline.call(300, 310, "cuMemAlloc_v2", correlation=3, line=2)
    timeline.call(900, 910, correlation=4, line=line)
    timeline.kernel(920, 930, "second", correlation=4)
    return timeline.recording(duration_ns=1000)


def test_the_first_use_of_a_library_is_left_out_and_work_of_another_line_is_not():
    same, other = (library_call(line).steady_state() for line in (2, 3))

    # From the load to the launch; what is not the host's is the start of the kernel.
    assert same.warm_up_ns == (0, 100, 0, 710, 0)
    assert other.warm_up_ns == (0, 100, 0, 110 + 10, 0)


IMPORT_SYSTEM = "<frozen importlib._bootstrap>"


def sampled_in(*files):
    """Return a recording of two kernels with a sample of the host between them.

    Args:
        files: Those of the sample's frames, the innermost first.
    """
    timeline = Timeline()
    for number, time in enumerate((0, 900), 1):
        timeline.call(time, time + 10, correlation=number, line=1)
        timeline.kernel(time + 10, time + 20, correlation=number)
    frames = [
        {"id": 100 + at, "name": "call", "filename": file, "line": 1}
        for at, file in enumerate(files)
    ]
    sample = {"time": 100, "end": 800, "state": "working", "stack": 100, "thread": 1, "samples": 1}
    rows = {
        "frames": frames,
        "stacks": [{"id": 100, "frames": [each["id"] for each in frames]}],
        "host_samples": [sample],
    }
    tables = dict(timeline.recording(duration_ns=1000).tables)
    for name, added in rows.items():
        table = rows_of(name, added)
        tables[name] = pa.concat_tables([tables[name].select(table.column_names), table])
    return Recording(tables, Manifest(duration_ns=1000))


@pytest.mark.parametrize(
    ("files", "imported"),
    [
        (["/x/site-packages/cupy/linalg.py", IMPORT_SYSTEM, "run.py"], 700),
        ([IMPORT_SYSTEM, "/x/site-packages/cupy/core.py", "run.py"], 700),
        # The program's own work while one of its modules is imported, and none at all.
        (["/x/site-packages/numpy/sort.py", "model.py", IMPORT_SYSTEM, "run.py"], 0),
        (["/x/site-packages/numpy/sort.py", "run.py"], 0),
    ],
)
def test_imports_of_libraries_are_left_out(files, imported):
    state = sampled_in(*files).steady_state()

    assert state.warm_up_ns == (0, 0, imported, 0, 0)


def test_a_kernel_that_ran_before_a_window_is_not_used_for_the_first_time_in_it():
    timeline = Timeline()
    for number in range(4):
        start = 1000 * number
        timeline.call(start, start + 400, correlation=number + 1, line=1)
        timeline.kernel(start + 400, start + 500, correlation=number + 1)
    recording = timeline.recording(duration_ns=4000)

    assert recording.window(1400, 3600).steady_state().left_out_ns == 0


def test_time_between_cells_is_nobodys():
    recording = timed(steps)
    state = recording.steady_state()
    middle = recording.duration_ns // 2
    begin, end = recording.derived["idle_gaps"]["time"].to_pylist()[20], middle
    split = with_cells(recording, [(0, begin), (end, recording.duration_ns)]).steady_state()

    busy = [(row["time"], row["end"]) for row in recording.table("activities").to_pylist()]
    pause = end - begin - sum(max(0, min(b, end) - max(a, begin)) for a, b in busy)
    assert split.between_cells_ns == pause > 0
    assert split.duration_ns == state.duration_ns - pause
    assert sum(split.causes_ns.values()) == split.idle_ns


def test_causes_add_up_in_shipped_recordings():
    assert len(SHIPPED) > 5
    for recording in map(gpuviz.load, SHIPPED):
        for device in recording.devices:
            state = recording.steady_state(device)
            assert sum(state.causes_ns.values()) == state.idle_ns
            assert 0 <= state.left_out_ns <= state.window_ns - state.busy_ns


def test_no_activity_has_no_steady_state():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.empty(1 << 20)

    assert recorder.recording.steady_state() is None


def test_idle_time_before_the_first_regular_iteration_is_left_out():
    def program(gpu):
        gpu.launch("start", duration=1e-3)
        gpu.synchronize()
        gpu.work_on_host(0.5)
        for step in range(20):
            gpu.launch("forward", duration=1e-3)
            gpu.launch("backward", duration=1e-3)
            gpu.work_on_host(30e-3 if step < 2 else 3e-3)
            gpu.synchronize()

    recording = timed(program)
    state = recording.steady_state()

    assert recording.iterations().num_rows == 20
    assert sum(state.warm_up_ns[:-1]) < MS / 100
    # The first two iterations take longer than the others.
    assert state.warm_up_ns[-1] == pytest.approx(500 * MS + 2 * 28 * MS, rel=0.02)
    assert left_out(state) == "without 561 ms of warm-up (556 ms before the first iteration)"


def test_a_short_iteration_before_long_ones_begins_no_regular_part():
    def program(gpu):
        for step in range(40):
            gpu.launch("forward", duration=1e-3)
            gpu.launch("backward", duration=1e-3)
            gpu.work_on_host(30e-3 if 0 < step < 12 else 3e-3)
            gpu.synchronize()

    state = timed(program).steady_state()

    assert state.warm_up_ns[-1] == pytest.approx(11 * 28 * MS + 3 * MS, rel=0.03)


def test_work_of_a_device_that_does_none_in_the_loop_is_not_left_out():
    timeline = Timeline()
    timeline.call(0, 10, correlation=1, line=1)
    timeline.kernel(10, 500, "prepare", correlation=1, device=1)
    for step in range(20):
        for part, name in enumerate(("forward", "backward"), 2):
            begin = 1000 + 100 * step + 50 * (part - 2)
            number = 2 * step + part
            timeline.call(begin, begin + 10, correlation=number, line=part)
            timeline.kernel(begin + 10, begin + 40, name, correlation=number, device=0)
    recording = timeline.recording(duration_ns=4000)

    first, second = (recording.steady_state(device) for device in (0, 1))

    assert recording.iterations(0).num_rows >= 18
    assert second.warm_up_work_ns == 0
    assert second.busy_ns == 490
    assert first.busy > 0.5


def test_a_window_has_no_time_before_a_loop_that_may_have_begun_before():
    def program(gpu):
        for _ in range(20):
            gpu.launch("forward", duration=1e-3)
            gpu.launch("backward", duration=1e-3)
            gpu.work_on_host(3e-3)
            gpu.synchronize()

    recording = timed(program)

    assert recording.window(12 * MS, 60 * MS).steady_state().left_out_ns == 0
