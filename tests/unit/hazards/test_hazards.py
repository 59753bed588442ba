"""Hazards: how certain they are, what they consist of, and where they are unknown."""

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
from tests.unit.hazards.two_streams import (
    SIZE,
    with_words,
    write_then_read,
)
from tests.unit.recording.from_activities import rows_of

RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"
WORKLOADS = sorted(RECORDINGS.glob("*.gpuviz"))


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
