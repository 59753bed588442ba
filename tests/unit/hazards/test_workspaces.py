"""Memory that a library uses each time, on two streams at once."""

import pytest

import gpuviz
from gpuviz.present.text import hazards_text
from tests.unit.hazards.test_misplaced_events import BYTES, recorded
from tests.unit.hazards.two_streams import Program
from tests.unit.recording.from_activities import rows_of

INIT = "void init_curand<curand_pseudo_state<curandStateXORWOW> >(long, unsigned long, long)"
DRAW = "void execute_dist<raw_functor, curand_pseudo_state<curandStateXORWOW>, int>(long, long)"


def drawn_on_two_streams(*, generators):
    """Return the recording of a program that draws numbers on two streams."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    streams = [gpu.Stream(non_blocking=True) for _ in range(2)]
    with gpuviz.record(device=gpu) as recorder:
        states = [gpu.empty(BYTES) for _ in range(generators)]
        numbers = [gpu.empty(BYTES) for _ in range(2)]
        for state in states:
            gpu.launch(INIT, writes=[state], duration=1e-3)
        gpu.synchronize()
        for number, stream in enumerate(streams):
            with stream:
                state = states[number % generators]
                gpu.launch(DRAW, reads=[state], writes=[state, numbers[number]], duration=1e-3)
        gpu.synchronize()
    return recorder.recording


def test_a_random_generator_that_two_streams_draw_from_is_named():
    recording = drawn_on_two_streams(generators=1)
    found = recording.hazards()
    merged = gpuviz.merge([recording, recording]).hazards()
    text = hazards_text(recording, found)

    assert {each.workspace for each in (*found, *merged)} == {"the state of a random generator"}
    assert "the state of a random generator used by two streams at once" in text
    assert "Let one stream wait for the other before it draws from the same generator." in text
    assert "@@" not in text


def test_a_generator_for_each_stream_is_no_hazard():
    assert drawn_on_two_streams(generators=2).hazards() == ()


def test_an_array_of_random_numbers_is_not_the_state():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    state, numbers = gpu.empty(BYTES), gpu.empty(BYTES)
    draws, reads = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    with gpuviz.record(device=gpu) as recorder:
        with draws:
            gpu.launch(INIT, writes=[state], duration=1e-3)
            gpu.launch(DRAW, reads=[state], writes=[state, numbers], duration=1e-3)
        with reads:
            gpu.launch("mean", reads=[numbers], duration=1e-3)
        gpu.synchronize()

    assert [each.workspace for each in recorder.recording.hazards()] == [""]


def test_the_workspace_that_torch_names_is_a_library_s():
    def two_products(pair):
        pair.write()
        pair.read()

    recording = recorded(two_products)
    first = recording.tables["memory_events"].slice(0, 1).to_pylist()[0]
    row = {"time": first["time"], "address": first["address"], "category": "workspace"}
    tables = {**recording.tables, "tensors": rows_of("tensors", [row])}
    (hazard,) = type(recording)(tables, recording.manifest).hazards()

    assert hazard.workspace == "the workspace of a library"


def allocated_by(recording, line):
    """Return a recording whose memory a line of an installed package allocates."""
    frames, stacks, events = (
        recording.tables[name].to_pylist() for name in ("frames", "stacks", "memory_events")
    )
    inner = {"id": 1 + max(row["id"] for row in frames), "cell": 0, "line": 9} | line
    inner["filename"] = "/x/site-packages/cupy/inner.py"
    first = 1 + max(row["id"] for row in stacks)
    known = {0: [], **{row["id"]: row["frames"] for row in stacks}}
    stacks += [{"id": first + each, "frames": [inner["id"], *known[each]]} for each in known]
    for row in events:
        row["stack"] += first
    tables = {
        "frames": rows_of("frames", [*frames, inner]),
        "stacks": rows_of("stacks", stacks),
        "memory_events": rows_of("memory_events", events),
    }
    return type(recording)({**recording.tables, **tables}, recording.manifest)


def test_two_streams_that_share_the_work_area_of_a_plan_are_one_report_with_a_plan_for_each():
    def two_ffts(pair):
        pair.write()
        pair.read()
        pair.write()

    line = "plan = cufft.Plan1d(out_size, fft_type, batch, devices=devices)"
    changed = allocated_by(recorded(two_ffts), {"name": "_exec_fft", "source": line})
    text = hazards_text(changed, changed.hazards())

    assert {each.workspace for each in changed.hazards()} == {"the work area of an FFT plan"}
    assert "the work area of an FFT plan used by two streams at once" in text
    assert text.count("fix: CuPy caches one plan for each shape") == text.count("fix: ") == 1


@pytest.mark.parametrize("routine", ["solve", ""])
def test_a_graph_that_uses_the_workspace_of_a_routine_needs_a_pool_of_its_own(routine):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    stream, result = gpu.Stream(non_blocking=True), gpu.empty(BYTES)
    with gpuviz.record(device=gpu) as recorder:
        with stream:
            stream.begin_capture()
            workspace = gpu.empty(BYTES)
            gpu.launch("getrf", reads=[workspace], writes=[workspace, result], duration=1e-3)
            del workspace
            graph = stream.end_capture()
            graph.launch(stream)
        gpu.synchronize()
    recording = recorder.recording
    if routine:
        line = "workspace = _cupy.empty(ws_size, dtype=dtype)"
        recording = allocated_by(recording, {"name": routine, "source": line})
    (hazard,) = recording.hazards()

    assert (f"a workspace that {routine} freed when it returned" in hazard.fix) == bool(routine)
    assert ("keep the array" in hazard.fix) != bool(routine)
    assert hazard.fix.endswith("a pool of its own: with gpuviz.use_mem_pool(gpuviz.MemPool()).")


@pytest.mark.parametrize(
    ("element", "size", "kinds"), [("long", 8, []), ("long", 4096, ["WAW"]), ("float", 8, ["WAW"])]
)
def test_the_state_of_a_generator_that_torch_writes_anew_is_no_race(element, size, kinds):
    fill = (
        "void at::native::vectorized_elementwise_kernel<2, "
        f"at::native::FillFunctor<{element}>, std::array<char*, 1ul> >(int)"
    )
    program = Program()
    state = program.empty(program.s, size)
    program.launch(program.s, fill, writes=[state])
    program.launch(program.t, fill, writes=[state])

    assert [each.kind for each in program.recording().hazards()] == kinds
