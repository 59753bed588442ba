import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz import _core
from gpuviz.commands.cli import commands
from gpuviz.data.codes import Code
from gpuviz.data.tables import DICTIONARIES
from gpuviz.hazards.known import unknown
from gpuviz.present.text import hazards_text
from tests.unit.formats.any_recording import any_recording
from tests.unit.recording.from_activities import rows_of

RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"
WORKLOADS = sorted(RECORDINGS.glob("*.gpuviz"))
SIZE = 1 << 20
LONG_S = 1e-3


class Program:
    """A simulated GPU with two non-blocking streams, whose kernels run concurrently."""

    def __init__(self, *, non_blocking=True):
        self.gpu = gpuviz.SimulatedGPU(real_time=False)
        self.recorder = gpuviz.record(device=self.gpu)
        self.recorder.start()
        self.s = self.gpu.Stream(non_blocking=non_blocking)
        self.t = self.gpu.Stream(non_blocking=non_blocking)

    def empty(self, stream, size=SIZE):
        with stream:
            return self.gpu.empty(size)

    def launch(self, stream, name="kernel", reads=(), writes=()):
        with stream:
            self.gpu.launch(name, reads=reads, writes=writes, duration=LONG_S, share=0.1)

    def recording(self):
        self.gpu.synchronize()
        self.recorder.stop()
        return self.recorder.recording

    def found(self):
        """Return kind, tier, and the names of both operations of each hazard."""
        return [
            (each.kind, each.tier, each.first.name, each.second.name)
            for each in self.recording().hazards()
        ]


@pytest.fixture
def program():
    return Program()


RAW = ("RAW", "probable", "write", "read")


def write_then_read(program, between):
    a = program.empty(program.s)
    program.launch(program.s, "write", writes=[a])
    between(program)
    program.launch(program.t, "read", reads=[a])
    program.gpu.synchronize()


def wait_before_record(program):
    event = program.gpu.Event()
    program.t.wait_event(event)
    program.s.record(event)


def wait_again_after_record(program):
    event = program.gpu.Event()
    program.t.wait_event(event)
    program.s.record(event)
    program.t.wait_event(event)


def wait_for_an_event_with_the_handle_of_another(program):
    event = program.s.record()
    handle = event.ptr
    del event
    event = program.gpu.Event()
    assert event.ptr == handle
    program.t.wait_event(event)


def test_a_read_on_another_stream_without_a_wait_is_a_hazard(program):
    write_then_read(program, lambda _: None)

    assert program.found() == [RAW]


@pytest.mark.parametrize(
    "between",
    [
        lambda program: program.t.wait_event(program.s.record()),
        lambda program: program.s.synchronize(),
        lambda program: program.s.record().synchronize(),
        lambda program: program.gpu.synchronize(),
        wait_again_after_record,
    ],
)
def test_what_orders_the_streams_makes_it_none(program, between):
    write_then_read(program, between)

    assert program.found() == []


@pytest.mark.parametrize(
    "between",
    [
        lambda program: program.t.synchronize(),
        lambda program: program.t.wait_event(program.t.record()),
        lambda program: program.s.wait_event(program.t.record()),
        lambda program: program.s.done,
        lambda program: program.s.record().done,
        lambda program: program.t.wait_event(program.gpu.Event()),
        lambda program: program.gpu.null_stream.wait_event(program.gpu.Event()),
        lambda program: program.gpu.Event().synchronize(),
        lambda program: program.gpu.Event().done,
        wait_before_record,
        wait_for_an_event_with_the_handle_of_another,
        lambda program: program.gpu.empty(3 * SIZE),
        lambda program: program.launch(program.gpu.null_stream),
    ],
)
def test_what_does_not_order_them_leaves_it(program, between):
    write_then_read(program, between)

    assert program.found() == [RAW]


@pytest.mark.parametrize("object_of", [lambda s: s, lambda s: s.record()])
def test_a_query_that_returns_success_orders_them(program, object_of):
    def poll(program):
        queried = object_of(program.s)
        while not queried.done:
            program.gpu.work_on_host(1e-4)

    write_then_read(program, poll)

    assert program.found() == []


def test_an_event_covers_only_what_was_launched_before_its_record(program):
    a = program.empty(program.s)
    event = program.s.record()
    program.launch(program.s, "write", writes=[a])
    program.t.wait_event(event)
    program.launch(program.t, "read", reads=[a])

    assert program.found() == [RAW]


def test_the_default_stream_orders_blocking_streams():
    program = Program(non_blocking=False)

    write_then_read(program, lambda program: program.launch(program.gpu.null_stream))

    assert program.found() == []


def test_copies_and_fills_are_certain(program):
    a = program.empty(program.s)
    with program.s:
        program.gpu.copy_to_device(a, pinned=True)
    with program.t:
        program.gpu.fill(a)

    (hazard,) = program.recording().hazards()
    assert (hazard.kind, hazard.tier, hazard.bytes) == ("WAW", "certain", SIZE)
    assert hazard.showed
    assert (hazard.first.mode, hazard.second.mode) == ("writes", "writes")


@pytest.mark.parametrize(("shift", "kinds"), [(0, []), (1, ["WAW"])])
def test_parts_of_an_array_on_two_streams_are_none(program, shift, kinds):
    """A kernel's extent is unknown, but a copy to the next part says where this part ends."""
    parts = 4
    a = program.empty(program.gpu.null_stream, parts * SIZE)
    native = program.gpu._native
    program.gpu.synchronize()
    for part in range(parts):
        stream = (program.s, program.t)[part % 2]
        address = a.ptr + max(part - shift, 0) * SIZE
        native.copy(stream.ptr, 1, SIZE, 0, address, True, False)
        kernel = _core.GpuKernel(
            name="part", duration_ns=1000, multiprocessors=1, accesses=[(address, 2)]
        )
        stream.launch(kernel)

    assert sorted({each.kind for each in program.recording().hazards()}) == kinds


def test_an_access_of_unknown_mode_is_a_hazard_only_if_the_other_one_writes(program):
    a = program.empty(program.s)
    program.launch(program.s, "write", writes=[a])
    program.launch(program.t, "opaque", reads=[a])
    recording = program.recording()
    modes = recording.tables["launch_blocks"]["mode"].to_pylist()
    assert modes == ["write", "read"]

    assert [each.kind for each in with_modes(recording, [2, 0]).hazards()] == ["WAW"]
    assert with_modes(recording, [1, 0]).hazards() == ()
    assert with_modes(recording, [0, 0]).hazards() == ()


def with_modes(recording, codes):
    return with_words(recording, "launch_blocks", "mode", codes)


def with_words(recording, name, column, codes):
    table = recording.tables[name]
    words = pa.array(DICTIONARIES[name, column])
    values = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), words)
    changed = table.set_column(table.schema.get_field_index(column), column, values)
    return type(recording)({**recording.tables, name: changed}, recording.manifest)


def test_pinned_memory_is_reused_without_regard_to_streams(program):
    freed_and_reused(program, lambda program, _: program.s.wait_event(program.t.record()))
    recording = program.recording()
    pinned = DICTIONARIES["pools", "memory"].index("pinned")
    pools = recording.tables["pools"].num_rows

    assert recording.hazards() == ()
    (hazard,) = with_words(recording, "pools", "memory", [pinned] * pools).hazards()
    assert (hazard.kind, hazard.first.name) == ("use_after_free", "use")


def test_a_synchronous_copy_to_the_host_makes_it_complete(program):
    def download(program):
        b = program.empty(program.s)
        program.gpu.copy_to_host(b, blocking=True)

    write_then_read(program, download)

    assert program.found() == [RAW]  # the streams do not synchronize with the default stream
    blocking = Program(non_blocking=False)
    write_then_read(blocking, download)
    assert blocking.found() == []


def freed_and_reused(program, before_free):
    a = program.empty(program.s)
    program.launch(program.t, "use", reads=[a])
    before_free(program, a)
    del a
    b = program.empty(program.s)
    program.launch(program.s, "next", writes=[b])
    program.gpu.synchronize()


def test_memory_that_is_reused_while_another_stream_uses_it_is_a_hazard(program):
    freed_and_reused(program, lambda *_: None)

    recording = program.recording()
    reuse, latent = recording.hazards()
    assert (reuse.kind, reuse.tier) == ("reuse", "probable")
    assert (reuse.first.name, reuse.second.name) == ("use", "next")
    assert reuse.block != reuse.other_block >= 0
    assert (latent.kind, latent.tier, latent.second.name) == ("use_after_free", "latent", "free")
    assert latent.second.mode == "frees"
    source = {each.source for each in (latent.second, reuse.first, reuse.second)}
    assert source == {
        "del a",
        'program.launch(program.t, "use", reads=[a])',
        'program.launch(program.s, "next", writes=[b])',
    }
    assert reuse.freed == latent.second.site
    assert "gpuviz.record_stream" in reuse.fix
    text = hazards_text(recording, (reuse, latent))
    assert "1. reuse, probable: memory reused while it may still be in use (1.00 MiB" in text
    assert "it also orders 1 more conflict:\n      use_after_free, latent: " in text


@pytest.mark.parametrize(
    "before_free",
    [
        lambda program, _: program.s.wait_event(program.t.record()),
        lambda program, _: program.t.synchronize(),
        lambda program, a: program.gpu.record_stream(a, program.t),
    ],
)
def test_a_wait_before_the_free_or_record_stream_makes_it_none(program, before_free):
    freed_and_reused(program, before_free)

    assert program.found() == []


def test_pairs_of_the_same_lines_are_counted(program):
    a = program.empty(program.s)
    for _ in range(5):
        program.launch(program.s, "write", writes=[a])
        program.launch(program.t, "read", reads=[a])
        program.gpu.synchronize()

    raw = program.recording().hazards()
    assert [(each.kind, each.count, each.showed) for each in raw] == [("RAW", 5, True)]


def with_bytes(recording, *sizes):
    """Return a recording whose launches are known to access these bytes of the block."""
    table = recording.tables["launch_blocks"]
    begin = table.schema.get_field_index("address")
    address = [
        block + first for block, (first, _) in zip(table["block"].to_pylist(), sizes, strict=True)
    ]
    table = table.set_column(begin, "address", pa.array(address, pa.uint64()))
    column = table.schema.get_field_index("bytes")
    size = pa.array([last - first if last else 0 for first, last in sizes], pa.uint64())
    tables = {**recording.tables, "launch_blocks": table.set_column(column, "bytes", size)}
    return type(recording)(tables, recording.manifest)


@pytest.mark.parametrize(
    ("write", "read", "tiers"),
    [
        ((0, SIZE), (0, SIZE), ["certain"]),
        ((0, SIZE), (0, 0), ["probable"]),
        ((0, 512), (512, SIZE), []),
        ((0, 513), (512, SIZE), ["certain"]),
        ((512, 0), (0, 512), []),
        ((512, 0), (0, 513), ["probable"]),
    ],
)
def test_known_bytes_make_a_hazard_certain_or_none(program, write, read, tiers):
    write_then_read(program, lambda _: None)

    found = with_bytes(program.recording(), write, read).hazards()

    assert [each.tier for each in found] == tiers


def captured(program, stream, *kernels):
    stream.begin_capture()
    for name, reads, writes in kernels:
        program.launch(stream, name, reads=reads, writes=writes)
    return stream.end_capture()


def test_a_captured_kernel_accesses_its_arrays_at_each_launch_of_the_graph(program):
    a = program.empty(program.s)
    graph = captured(program, program.s, ("node", [], [a]))
    program.launch(program.t, "read", reads=[a])  # nothing has run before it
    program.gpu.synchronize()
    for _ in range(3):
        graph.launch(program.s)
        program.launch(program.t, "read", reads=[a])
        program.gpu.synchronize()

    (found,) = program.recording().hazards()
    assert (found.kind, found.first.name, found.second.name) == ("RAW", "graph launch", "read")
    assert (found.count, found.showed) == (3, True)
    assert "graph.launch(program.s)" in found.first.source


def test_a_stream_that_waits_for_a_graph_may_use_its_arrays(program):
    a = program.empty(program.s)
    graph = captured(program, program.s, ("node", [], [a]))
    for _ in range(3):
        graph.launch(program.s)
        program.t.wait_event(program.s.record())
        program.launch(program.t, "read", reads=[a])
        program.s.wait_event(program.t.record())

    assert program.found() == []


def test_two_graphs_of_the_same_temporary_are_unordered_on_two_streams(program):
    out = [program.empty(program.s) for _ in range(2)]
    graphs = []
    for each in out:
        temporary = program.empty(program.s)
        graphs.append(
            captured(program, program.s, ("make", [], [temporary]), ("use", [temporary], [each]))
        )
        del temporary
    graphs[0].launch(program.s)
    graphs[1].launch(program.t)

    found = {each.kind: each for each in program.recording().hazards()}
    assert found.keys() == {"WAW", "use_after_free"}
    assert "graphs[0].launch" in found["WAW"].first.source
    assert "graphs[1].launch" in found["WAW"].second.source
    assert found["use_after_free"].tier == "latent"


def test_a_temporary_that_another_array_owns_by_then_is_reused(program):
    out = program.empty(program.s)
    temporary = program.empty(program.s)
    graph = captured(program, program.s, ("make", [], [temporary]), ("use", [temporary], [out]))
    del temporary
    other = program.empty(program.s)
    graph.launch(program.s)

    (found,) = program.recording().hazards()
    assert (found.kind, found.first.name, found.second.name) == (
        "reuse", "allocation", "graph launch",
    )  # fmt: skip
    assert found.showed
    assert "as long as the graph is launched" in found.fix
    assert "memory of a graph belongs to another array" in hazards_text(
        program.recorder.recording, [found]
    )
    assert other.ptr


@pytest.mark.parametrize("input_is_read", [True, False])
def test_what_a_later_owner_left_matters_to_a_graph_that_reads_it(program, input_is_read):
    out = program.empty(program.s)
    first = program.empty(program.s)
    kernel = ("use", [first], [out]) if input_is_read else ("fill", [out], [first])
    graph = captured(program, program.s, kernel)
    del first, kernel
    later = program.empty(program.s)
    program.launch(program.s, "overwrite", writes=[later])
    del later
    graph.launch(program.s)

    (found,) = program.recording().hazards()
    wanted = ("reuse", "allocation") if input_is_read else ("use_after_free", "free")
    assert (found.kind, found.first.name) == wanted
    assert found.tier == ("probable" if input_is_read else "latent")


def test_a_graph_whose_arrays_are_kept_is_none(program):
    out, temporary = program.empty(program.s), program.empty(program.s)
    graph = captured(program, program.s, ("make", [], [temporary]), ("use", [temporary], [out]))
    other = program.empty(program.s)
    program.launch(program.s, "overwrite", writes=[other])
    for _ in range(2):
        graph.launch(program.s)

    assert program.found() == []


def test_a_temporary_that_became_a_result_of_its_own_graph_is_none(program):
    program.s.begin_capture()
    temporary = program.empty(program.s)
    program.launch(program.s, "make", writes=[temporary])
    between = program.empty(program.s)
    program.launch(program.s, "use", reads=[temporary], writes=[between])
    del temporary
    result = program.empty(program.s)  # the same memory
    program.launch(program.s, "finish", reads=[between], writes=[result])
    graph = program.s.end_capture()
    for _ in range(2):
        graph.launch(program.s)

    assert program.found() == []


def test_a_graph_with_a_kernel_of_a_communication_library_orders_what_came_before(program):
    a = program.empty(program.s)
    graph = captured(program, program.t, ("ncclDevKernel_AllReduce", [], [a]))
    write_then_read(program, lambda program: graph.launch(program.t))

    assert program.found() == []


def test_a_graph_captured_before_the_recording_orders_what_came_before():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    s, t = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    t.begin_capture()
    with t:
        gpu.launch("node", duration=LONG_S)
    graph = t.end_capture()
    with gpuviz.record(device=gpu) as recorder:
        with s:
            a = gpu.empty(SIZE)
            gpu.launch("write", writes=[a], duration=LONG_S)
        graph.launch(t)
        with t:
            gpu.launch("read", reads=[a], duration=LONG_S)
        gpu.synchronize()

    assert recorder.recording.tables["graph_calls"]["capture"].to_pylist() == [0]
    assert recorder.recording.hazards() == ()


@pytest.mark.parametrize("is_recorded", [True, False])
@pytest.mark.parametrize("wait", [lambda t, e: t.wait_event(e), lambda _, e: e.synchronize()])
def test_a_wait_for_an_event_from_before_the_recording_orders_everything(is_recorded, wait):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    s, t = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
    event = s.record() if is_recorded else gpu.Event()
    with gpuviz.record(device=gpu) as recorder:
        with s:
            a = gpu.empty(SIZE)
            gpu.launch("write", writes=[a], duration=LONG_S)
        wait(t, event)
        with t:
            gpu.launch("read", reads=[a], duration=LONG_S)
        gpu.synchronize()

    assert recorder.recording.hazards() == ()


def test_streams_may_come_and_go(program):
    a = program.empty(program.s)
    for _ in range(20):
        stream = program.gpu.Stream(non_blocking=True)
        program.launch(stream, "write", writes=[a])
        stream.synchronize()
        del stream
    program.launch(program.t, "read", reads=[a])

    assert program.found() == []


def test_a_stream_with_the_handle_of_a_destroyed_one_has_arrays_of_its_own(program):
    for _ in range(20):
        stream = program.gpu.Stream(non_blocking=True)
        a = program.empty(stream)
        program.launch(stream, "write", writes=[a])
        program.launch(stream, "read", reads=[a])
        del a
        stream.synchronize()
        del stream

    assert program.found() == []


def test_a_stream_that_reuses_memory_of_the_destroyed_one_with_its_handle_is_not_ordered(program):
    first = program.gpu.Stream(non_blocking=True)
    a = program.empty(first)
    program.launch(first, "read", reads=[a])
    handle, address = first.ptr, a.ptr
    del first
    second = program.gpu.Stream(non_blocking=True)
    del a
    b = program.empty(second)
    program.launch(second, "write", writes=[b])

    found = program.found()

    assert (second.ptr, b.ptr) == (handle, address)
    assert ("reuse", "read", "write") in [(kind, *names) for kind, _, *names in found]


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)
def test_the_workloads_have_none(path):
    recording = gpuviz.load(path)

    assert unknown(recording) == ""
    assert recording.hazards() == ()


def test_a_workload_without_its_waits_has_some():
    recording = gpuviz.load(RECORDINGS / "image_pipeline.gpuviz")
    rows = recording.tables["synchronizations"]
    kept = rows.filter([kind == "event_record" for kind in rows["kind"].to_pylist()])
    racy = type(recording)({**recording.tables, "synchronizations": kept}, recording.manifest)

    found = racy.hazards()

    assert {each.first.stream for each in found} == {"images", "label copies"}
    assert all(each.fix and each.first.site != each.second.site for each in found)


def test_where_the_order_is_not_known_nothing_is_reported(program):
    write_then_read(program, lambda _: None)
    recording = program.recording()
    start, end = recording.time_range
    manifest = type(recording.manifest)(dropped_activities=1)
    dropped = type(recording)(recording.tables, manifest)
    foreign = type(recording.manifest)(allocator="observe", allocator_name="MemoryAsyncPool")
    unknown_reuse = type(recording)(recording.tables, foreign)
    no_blocks = {**recording.tables, "launch_blocks": recording.tables["launch_blocks"][:0]}
    without = type(recording)(no_blocks, recording.manifest)

    for judged, reason in (
        (recording.window(start, end), "a part of a recording"),
        (dropped, "dropped"),
        (unknown_reuse, "allocator"),
        (without, "No launch is recorded with the blocks that it touches"),
    ):
        assert judged.hazards() == ()
        assert reason in unknown(judged)
        assert hazards_text(judged, ()) == unknown(judged)


def test_the_command_prints_hazards_and_why_there_are_none(program, tmp_path):
    write_then_read(program, lambda _: None)
    path = program.recording().save(tmp_path / "race.gpuviz")

    shown = CliRunner().invoke(commands, ["hazards", str(path)]).output
    facts = json.loads(CliRunner().invoke(commands, ["hazards", "--json", str(path)]).output)
    nothing = CliRunner().invoke(commands, ["hazards", str(WORKLOADS[0])]).output

    assert shown.startswith("1. RAW, probable: read without waiting for the write (1.00 MiB")
    assert "second_stream.wait_event(first_stream.record())" in shown
    assert [each["kind"] for each in facts["hazards"]] == ["RAW"]
    assert facts["unknown"] == ""
    assert nothing == "No unordered operations on the same memory were found.\n"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"code": [99]}, "has no code"),
        ({"stream": [7]}, "stream 7 does not exist"),
        ({"accesses": [2]}, "fewer accesses"),
        ({"code": [11], "object": [5]}, "block 5 does not exist"),
        ({"accesses": [1], "mode": [9]}, "no mode"),
    ],
)
def test_operations_on_rows_that_do_not_exist_are_an_error(change, text):
    def columns(**types):
        return {name: np.array(change.get(name, [0]), kind) for name, kind in types.items()}

    operations = columns(code="u1", stream="u4", device="u2", object="u4", accesses="u4")
    accesses = columns(block="u4", mode="u1", start="u8", stop="u8", is_exact="u1")
    blocks = columns(address="u8", bytes="u8", is_pinned="u1", is_host_written="u1")
    blocks |= columns(is_private="u1")

    with pytest.raises(ValueError, match=text):
        _core.hazards_of(operations, accesses, blocks)


def test_a_block_at_the_address_of_a_live_one_ends_it():
    codes = [Code.ALLOCATE, Code.LAUNCH, Code.ALLOCATE, Code.LAUNCH, Code.FREE]
    operations = {
        "code": np.array(codes, np.uint8),
        "stream": np.zeros(5, np.uint32),
        "device": np.zeros(5, np.uint16),
        "object": np.array([0, 0, 1, 0, 0], np.uint32),
        "accesses": np.array([0, 1, 0, 1, 0], np.uint32),
    }
    accesses = {
        "block": np.array([0, 0], np.uint32),
        "mode": np.array([3, 3], np.uint8),
        "start": np.zeros(2, np.uint64),
        "stop": np.full(2, 64, np.uint64),
        "is_exact": np.ones(2, np.uint8),
    }
    blocks = {
        "address": np.array([4096, 4160], np.uint64),
        "bytes": np.array([128, 64], np.uint64),
        "is_pinned": np.zeros(2, np.uint8),
        "is_host_written": np.zeros(2, np.uint8),
        "is_private": np.zeros(2, np.uint8),
    }

    assert len(_core.hazards_of(operations, accesses, blocks)["kind"]) == 0


@st.composite
def touch(draw):
    block = 512 * draw(st.integers(1, 4))
    return {
        "correlation": draw(st.integers(0, 6)),
        "block": block,
        "address": block + draw(st.sampled_from([0, 0, 256, 600])),
        "mode": draw(st.sampled_from(DICTIONARIES["launch_blocks", "mode"])),
        "bytes": draw(st.sampled_from([0, 0, 64, 4096])),
    }


@st.composite
def graph_call(draw):
    return {
        "correlation": draw(st.integers(0, 6)),
        "kind": draw(st.sampled_from(DICTIONARIES["graph_calls", "kind"])),
        "name": 0,
        "stream": draw(st.integers(0, 3)),
        "capture": draw(st.integers(1, 2)),
        "graph": draw(st.integers(0, 2)),
        "event": draw(st.integers(0, 1)),
    }


@given(
    any_recording(), st.lists(touch(), max_size=8), st.lists(graph_call(), min_size=2, max_size=8)
)
def test_any_recording_can_be_judged(recording, touched, graph_calls):
    tables = {
        **recording.tables,
        "launch_blocks": rows_of("launch_blocks", touched),
        "graph_calls": rows_of("graph_calls", graph_calls),
    }
    judged = type(recording)(tables, recording.manifest)

    found = judged.hazards()

    rows = judged.tables["memory_events"].num_rows
    for hazard in found:
        assert 0 <= hazard.block < rows
        assert hazard.count >= 1
        assert hazard.bytes > 0
    assert hazards_text(judged, found)
