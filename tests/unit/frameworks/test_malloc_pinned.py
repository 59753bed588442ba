"""Pinned memory for CuPy's own objects, from simulated devices."""

import gc
import os
from types import SimpleNamespace

import cupy
import pytest

import gpuviz
from gpuviz import _core
from gpuviz.allocator import memory
from gpuviz.data.tables import ACTIONS
from gpuviz.frameworks import cupy as framework
from tests.unit.frameworks.simulated_cupy import state

MIB = 1 << 20
STREAM = 0x1000


@pytest.fixture(autouse=True)
def process(monkeypatch):
    """A process with two simulated devices, its current one and the current stream."""
    state = SimpleNamespace(device=0, stream=0, devices={})

    def open_device(ordinal):
        state.devices[ordinal] = _core.SimulatedDevice(1 << 30, ordinal)
        return state.devices[ordinal]

    monkeypatch.setattr(memory, "_process", memory._Process())
    monkeypatch.setattr(memory, "_open_device", open_device)
    state.allocator = _core.PinnedAllocator(
        pointer_type=cupy.cuda.PinnedMemoryPointer,
        runtime_module=SimpleNamespace(),
        stream_module=SimpleNamespace(),
        current_device=lambda: state.device,
        current_stream=lambda: state.stream,
        open_host=memory.host_allocator,
        open_device=memory.caching_allocator,
        refused=framework._pinned_memory_refused,
    )
    state.malloc = _core.cupy_malloc_pinned(lambda: state.allocator)
    yield state
    cupy.cuda.set_pinned_memory_allocator()
    gc.collect()


@pytest.fixture
def malloc_pinned(process):
    return process.malloc


def active():
    return gpuviz.host_memory_stats()["active_bytes.current"]


def test_cupy_allocates_with_it_once_installed(malloc_pinned):
    cupy.cuda.set_pinned_memory_allocator(malloc_pinned)

    pointer = cupy.cuda.alloc_pinned_memory(3 * MIB)

    assert isinstance(pointer, cupy.cuda.PinnedMemoryPointer)
    assert (pointer.ptr, pointer.size()) == (pointer.mem.ptr, 3 * MIB)
    assert active() == 4 * MIB


def test_its_pointers_are_those_that_cupy_would_have_made(process, malloc_pinned):
    pointer = malloc_pinned(1234)
    made = cupy.cuda.PinnedMemoryPointer(pointer.mem, 0)

    assert process.allocator.is_direct
    assert (pointer.mem, pointer.ptr, pointer.size()) == (made.mem, made.ptr, made.size())
    assert (int(pointer), (pointer + 34).size()) == (made.ptr, 1200)


class Wrapped:
    """A class without CuPy's fields, such as another version may have."""

    def __init__(self, mem, offset):
        self.mem, self.ptr = mem, mem.ptr + offset


def test_without_the_fields_of_cupys_class_its_constructor_is_called(process):
    allocator = _core.PinnedAllocator(
        pointer_type=Wrapped,
        **state(),
        open_host=memory.host_allocator,
        open_device=memory.caching_allocator,
        refused=MemoryError,
    )

    pointer = _core.cupy_malloc_pinned(lambda: allocator)(MIB)

    assert not allocator.is_direct
    assert (pointer.ptr, pointer.mem.size) == (pointer.mem.ptr, MIB)
    assert list(process.devices) == [0]


def test_memory_is_freed_with_the_last_reference_to_it(malloc_pinned):
    pointer = malloc_pinned(MIB)
    part = pointer + 1234
    address = pointer.ptr
    del pointer
    assert active() == MIB
    del part

    assert malloc_pinned(MIB).ptr == address


@pytest.mark.parametrize("busy", [0, STREAM], ids=["blocking streams", "the current stream"])
def test_it_is_not_reused_before_streams_at_its_free_are_done(process, busy, malloc_pinned):
    pointer = malloc_pinned(MIB)
    address = pointer.ptr
    process.stream = STREAM
    process.devices[0].occupy(busy)
    del pointer

    during = malloc_pinned(MIB)
    process.devices[0].finish(busy)
    after = malloc_pinned(MIB)

    assert during.ptr != address
    assert after.ptr == address


def test_the_streams_are_those_of_the_device_current_at_its_free(process, malloc_pinned):
    pointer = malloc_pinned(MIB)
    address = pointer.ptr
    process.device, process.stream = 1, STREAM
    gpuviz.allocator.memory.caching_allocator(1)
    process.devices[1].occupy(STREAM)
    del pointer

    assert malloc_pinned(MIB).ptr != address


def test_size_zero_has_no_memory(malloc_pinned):
    pointer = malloc_pinned(0)

    assert (pointer.ptr, pointer.size()) == (0, 0)


def test_a_refusal_is_cupys_error_with_the_size(process, malloc_pinned):
    malloc_pinned(1)
    process.devices[0].refuse_host_beyond(MIB)

    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError, match="MemoryAllocation") as raised:
        malloc_pinned(2 * MIB)

    assert raised.value.status == 2
    assert "2097152 bytes of pinned host memory" in raised.value.__notes__[0]


@pytest.mark.parametrize(("size", "error"), [("1", TypeError), (None, TypeError), (-1, ValueError)])
def test_other_sizes_are_errors_that_name_it(size, error, malloc_pinned):
    with pytest.raises(error, match="size must be a number of bytes"):
        malloc_pinned(size)


def test_the_cache_is_returned_to_the_driver_on_request(process, malloc_pinned):
    kept, freed = malloc_pinned(MIB), malloc_pinned(2 * MIB)
    del freed

    gpuviz.empty_host_cache()

    assert process.devices[0].host_used == MIB
    assert kept.size() == MIB


def test_emptying_the_cache_before_the_first_allocation_does_nothing(process):
    gpuviz.empty_host_cache()

    assert process.devices == {}


def test_a_forked_child_neither_frees_nor_allocates(process, malloc_pinned):
    pointer = malloc_pinned(MIB)
    child = os.fork()
    if child == 0:
        process.allocator.abandon()
        del pointer
        try:
            malloc_pinned(MIB)
        except RuntimeError as error:
            os._exit(0 if active() == MIB and "forked child" in str(error) else 1)
        os._exit(2)

    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert pointer.size() == MIB


def test_a_free_that_fails_is_counted_and_raises_nothing(process, malloc_pinned):
    notes = framework.FailedFrees(process.allocator).notes
    pointer = malloc_pinned(MIB)
    process.device = -1
    del pointer

    assert process.allocator.lost_frees == 1
    assert notes() == ("1 free of an array failed; that memory stays allocated.",)


def test_its_events_have_the_lines_that_allocated_and_freed(process, malloc_pinned):
    malloc_pinned(1)
    session = _core.Session(stack_depth=8)
    session.start()
    memory.host_allocator(0).record_into(session)
    process.allocator.set_session(session)

    pointer = malloc_pinned(MIB)
    del pointer

    process.allocator.set_session(None)
    memory.host_allocator(0).stop_recording()
    session.stop()
    (rows,) = session.take_tables(flush=True)["host_memory_events"]
    stacks = session.new_stacks(1)
    new = rows["size"] == MIB
    actions = [ACTIONS[action] for action in rows["action"][new]]
    functions = {stacks[stack - 1][0][0].co_name for stack in rows["stack"][new]}
    assert actions == ["segment_alloc", "alloc", "free_requested"]
    assert functions == {test_its_events_have_the_lines_that_allocated_and_freed.__name__}
