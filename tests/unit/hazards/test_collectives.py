"""Hazards of the buffers of collectives, with rows as NCCL's plugin writes them."""

import pyarrow as pa
import pytest

from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.hazards.two_streams import SIZE, Program

KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


class Collectives(Program):
    """A program whose collectives have rows."""

    def __init__(self):
        super().__init__()
        self.rows = []

    def collective(self, stream, source=None, destination=None, function="all_reduce", **columns):
        """Run a collective on a stream, of buffers or of addresses."""
        self.launch(stream, KERNEL)
        addresses = {"source": address(source), "destination": address(destination)}
        self.rows.append({"function": function, **addresses, **columns})
        self.gpu.work_on_host(1e-6)

    def found(self):
        recording = with_rows(self.recording(), self.rows)
        return [(each.kind, each.first.name, each.second.name) for each in recording.hazards()]


def address(buffer):
    return getattr(buffer, "ptr", buffer or 0)


def with_rows(recording, rows):
    """Return a recording with a row just after each launch of NCCL's kernel."""
    names = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    calls = {row["correlation"]: row for row in recording.table("api_calls").to_pylist()}
    launches = [
        calls[row["correlation"]]
        for row in sorted(
            recording.table("activities").to_pylist(), key=lambda row: row["correlation"]
        )
        if names.get(row["name"]) == KERNEL
    ]
    told = {
        "communicator": 1, "rank": 0, "ranks": 2, "sequence": 0, "peer": 0, "count": SIZE // 4,
        "element": "float32", "bytes": SIZE, "stream": 0, "algorithm": "ring", "protocol": "ll",
        "channels": 2, "range": 0,
    }  # fmt: skip
    complete = [
        told | {"time": call["end"] + 1, "thread": call["thread"]} | row
        for call, row in zip(launches, rows, strict=True)
    ]
    table = pa.Table.from_pylist(complete, schema=schemas()["collectives"])
    return Recording(dict(recording.tables) | {"collectives": table}, recording.manifest)


@pytest.fixture
def program():
    return Collectives()


def nothing(program):
    pass


def with_an_event(program):
    program.t.wait_event(program.s.record())


@pytest.mark.parametrize(("between", "is_hazard"), [(nothing, True), (with_an_event, False)])
def test_a_collective_of_a_buffer_that_another_stream_still_writes(program, between, is_hazard):
    a = program.empty(program.s)
    program.launch(program.s, "write", writes=[a])
    between(program)
    program.collective(program.t, a, program.empty(program.t))
    program.gpu.synchronize()

    assert program.found() == ([("RAW", "write", KERNEL)] if is_hazard else [])


@pytest.mark.parametrize(("between", "is_hazard"), [(nothing, True), (with_an_event, False)])
def test_a_read_of_what_a_collective_on_another_stream_writes(program, between, is_hazard):
    a, b = program.empty(program.s), program.empty(program.s)
    program.collective(program.s, a, b)
    between(program)
    program.launch(program.t, "read", reads=[b])
    program.gpu.synchronize()

    assert program.found() == ([("RAW", KERNEL, "read")] if is_hazard else [])


def test_two_readers_of_a_buffer_are_none(program):
    a = program.empty(program.s)
    program.collective(program.s, a, program.empty(program.s))
    program.launch(program.t, "read", reads=[a])
    program.gpu.synchronize()

    assert program.found() == []


@pytest.mark.parametrize("is_ordered", [False, True])
def test_a_buffer_that_is_reused_while_a_collective_reads_it(program, is_ordered):
    a, b = program.empty(program.s), program.empty(program.t)
    program.gpu.synchronize()
    program.collective(program.t, a, b)
    if is_ordered:
        program.s.wait_event(program.t.record())
    del a
    again = program.empty(program.s)  # the same memory
    program.launch(program.s, "write", writes=[again])
    program.gpu.synchronize()

    found = program.found()

    assert {kind for kind, *_ in found} == (set() if is_ordered else {"reuse", "use_after_free"})


@pytest.mark.parametrize(("offset", "is_hazard"), [(SIZE, True), (SIZE // 2, True), (0, False)])
def test_a_collective_accesses_a_part_of_a_block(program, offset, is_hazard):
    a = program.empty(program.s, 4 * SIZE)
    program.launch(program.s, "fill", writes=[a])
    program.gpu.synchronize()
    program.collective(program.s, destination=a.ptr + SIZE)
    program.collective(program.t, a.ptr + offset)
    program.gpu.synchronize()

    assert program.found() == ([("RAW", KERNEL, KERNEL)] if is_hazard else [])


@pytest.mark.parametrize(
    ("function", "rank", "is_hazard"),
    [("broadcast", 0, True), ("broadcast", 1, False), ("reduce", 1, True), ("send", 0, True)],
)
def test_only_the_root_of_a_broadcast_reads(program, function, rank, is_hazard):
    a = program.empty(program.s)
    program.launch(program.s, "write", writes=[a])
    program.collective(program.t, a, function=function, rank=rank)
    program.gpu.synchronize()

    assert bool(program.found()) == is_hazard


@pytest.mark.parametrize(
    "unknown", [{"thread": 1}, {"function": "unknown"}, {"bytes": 0}, {"bytes": 1 << 40}]
)
def test_what_is_not_known_for_certain_is_none(program, unknown):
    a = program.empty(program.s)
    program.launch(program.s, "write", writes=[a])
    program.collective(program.t, a, **unknown)
    program.gpu.synchronize()

    assert program.found() == []


def test_a_collective_orders_what_comes_after_it(program):
    a = program.empty(program.s)
    program.launch(program.s, "write", writes=[a])
    program.collective(program.t, program.empty(program.t), program.empty(program.t))
    program.launch(program.t, "read", reads=[a])
    program.gpu.synchronize()

    assert program.found() == []
