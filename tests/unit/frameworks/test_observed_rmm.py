"""Recordings of what a program's own memory resources of RMM do, with a library like RMM."""

import gc
import sys
import weakref
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import cupy
import pytest
from cupy.cuda import memory

from gpuviz.analysis.pools import RMM_OWNER, private_pools
from gpuviz.errors import RecordingError
from gpuviz.frameworks import cupy as cupy_framework
from gpuviz.frameworks import driver_devices, process_memory
from gpuviz.frameworks import rmm as framework
from tests.faults import Fault
from tests.unit.frameworks.rmm_resources import (
    FIRST,
    SECOND,
    CudaMemoryResource,
    FullMemoryResource,
    PoolMemoryResource,
    Resources,
    Source,
    StatisticsResourceAdaptor,
    Stream,
    events_of,
    record,
)
from tests.unit.frameworks.simulated_cupy import state

KEPT = (
    "RMM keeps the program's PoolMemoryResource: its allocations are recorded, but not the memory "
    "that it reserves."
)


class Buffer:
    """Memory on a stream that keeps its resource, as rmm.DeviceBuffer does."""

    def __init__(self, rmm, size, stream=0, device=0):
        self.size, self.stream = size, Stream(stream)
        self.resource = rmm.devices[device]
        self.address = self.resource.allocate(size, self.stream)

    def free(self):
        self.resource.deallocate(self.address, self.size, self.stream)


@pytest.fixture
def rmm(monkeypatch):
    """An rmm.mr with two devices, and no recording before."""
    for name in ("ours", "previous", "observed", "in_use"):
        monkeypatch.setattr(framework._Process, name, {})
    monkeypatch.setattr(framework._Process, "observer", None)
    driver = SimpleNamespace(device_count=lambda: 2)
    monkeypatch.setattr(framework, "cuda_driver", lambda: driver)
    module = ModuleType("rmm")
    module.mr = Resources()
    monkeypatch.setitem(sys.modules, "rmm", module)
    return module.mr


@pytest.fixture
def pool(rmm):
    """A pool of the program on both devices."""
    chosen = PoolMemoryResource()
    rmm.devices = {0: chosen, 1: PoolMemoryResource()}
    return chosen


def test_what_the_programs_resource_does_is_recorded(rmm, pool):
    with record() as recorder:
        first = Buffer(rmm, 1000, stream=0x70)
        second = Buffer(rmm, 77, stream=0x80)
        first.free()
        other = Buffer(rmm, 5, device=1)

    recording = recorder.recording
    assert events_of(recording) == [
        ("alloc", 0, FIRST, 1000, 1000, 0x70, "rmm"),
        ("alloc", 0, SECOND, 77, 77, 0x80, "rmm"),
        ("free_requested", 0, FIRST, 1000, 1000, 0x70, "rmm"),
        ("free_completed", 0, FIRST, 1000, 1000, 0x70, "rmm"),
        ("alloc", 1, FIRST, 5, 5, 0, "rmm"),
    ]
    assert pool.calls == [
        ("allocate", 1000, first.stream),
        ("allocate", 77, second.stream),
        ("deallocate", FIRST, 1000, first.stream),
    ]
    assert other.size == 5
    assert recorder.status().notes == (KEPT,)


def test_its_events_have_the_line_of_the_program(rmm, pool):
    with record() as recorder:
        Buffer(rmm, 1000).free()

    [site] = recorder.recording.sites(by="line").to_pylist()
    assert site["frameworks"] == "rmm"
    assert "test_observed_rmm.py" in site["site"]
    assert pool.next == FIRST


def test_its_blocks_are_those_of_no_other_allocator(rmm, pool):
    with record() as recorder:
        Buffer(rmm, 1000)

    recording = recorder.recording
    assert [(row["owner"], row["framework"]) for row in recording.table("pools").to_pylist()] == [
        (RMM_OWNER, "rmm")
    ]
    assert list(private_pools(recording.tables)) == []
    assert recording.memory_stats(0)["reserved_bytes.all.peak"] == 0
    assert recording.memory_stats(0)["allocated_bytes.all.peak"] == 1000
    with pytest.raises(RecordingError, match="RMM's memory resource used the GPU too"):
        recording.what_if()
    assert pool.next == SECOND


def test_the_programs_resource_is_put_back(rmm, pool):
    with record():
        during = rmm.devices[0]

    assert during is not pool
    assert rmm.devices[0] is pool
    assert type(rmm.devices[1]) is PoolMemoryResource


@pytest.mark.parametrize("interrupted", ["observe", "stop_observing"])
def test_the_programs_resource_is_put_back_whatever_is_interrupted(rmm, pool, interrupted):
    fault = Fault(folder="/gpuviz/frameworks/rmm.py")
    for line in fault.lines():
        for name in ("observe", "stop_observing"):
            with fault.armed(line) if name == interrupted else nullcontext():
                getattr(framework, name)()
        notes = framework.stop_observing()

        assert rmm.devices[0] is pool
        assert framework.REPLACED not in notes


def test_a_resource_that_the_program_sets_during_the_recording_stays(rmm, pool):
    later = PoolMemoryResource()
    with record() as recorder:
        Buffer(rmm, 1000)
        rmm.devices[0] = later

    assert rmm.devices[0] is later
    assert recorder.status().notes == (KEPT, framework.REPLACED)
    assert pool.next == SECOND


def test_memory_is_freed_after_the_recording_and_the_next_one_knows_what_is_left(rmm, pool):
    with record() as first:
        freed, kept = Buffer(rmm, 1000), Buffer(rmm, 77)
    freed.free()
    with record() as second:
        kept.free()

    assert [event[0] for event in events_of(first.recording)] == ["alloc", "alloc"]
    assert second.recording.manifest.initial_events == 1
    assert events_of(second.recording) == [
        ("alloc", 0, SECOND, 77, 77, 0, "rmm"),
        ("free_requested", 0, SECOND, 77, 77, 0, "rmm"),
        ("free_completed", 0, SECOND, 77, 77, 0, "rmm"),
    ]
    assert [call[0] for call in pool.calls] == ["allocate", "allocate", "deallocate", "deallocate"]


@pytest.mark.usefixtures("pool")
def test_a_resource_of_the_program_goes_once_its_memory_is_freed(rmm):
    gc.collect()
    gc.disable()
    try:
        rmm.devices[0] = PoolMemoryResource()
        seen = weakref.ref(rmm.devices[0])
        with record():
            ours = weakref.ref(rmm.devices[0])
            buffer = Buffer(rmm, 1000)
        rmm.devices[0] = CudaMemoryResource()
        # Memory that only C++ owns does not keep the functions that free it.
        free, stream = buffer.resource.deallocate, buffer.stream
        del buffer

        assert (seen() is None, ours() is None) == (False, False)
        free(FIRST, 1000, stream)
        del free
        assert (seen(), ours()) == (None, None)
    finally:
        gc.enable()


def test_a_failed_request_raises_the_programs_error(rmm):
    rmm.devices[0] = FullMemoryResource()

    with record() as recorder, pytest.raises(MemoryError) as raised:
        Buffer(rmm, 1000)

    assert raised.value is FullMemoryResource.error
    assert events_of(recorder.recording) == []


def test_an_allocation_that_cannot_be_recorded_succeeds(rmm, pool):
    with record() as recorder:
        address = rmm.devices[0].allocate(1000, "no stream")

    assert address == FIRST
    assert recorder.status().notes == (KEPT, "1 allocation of RMM was not recorded.")
    assert pool.next == SECOND


def test_a_resource_that_rmms_functions_look_for_is_left_in_place(rmm):
    rmm.devices[0] = counting = StatisticsResourceAdaptor()

    with record() as recorder:
        during = rmm.devices[0]

    assert during is counting
    assert recorder.status().notes == (
        "RMM keeps the program's StatisticsResourceAdaptor, whose memory is not recorded.",
    )


def test_the_default_resource_is_observed_if_nothing_is_to_be_installed(rmm):
    before = rmm.devices[0]
    with record(Source(only_observe=True)) as recorder:
        Buffer(rmm, 1000)

    assert rmm.devices[0] is before
    assert [event[0] for event in events_of(recorder.recording)] == ["alloc"]
    assert recorder.status().notes == ()


class Driver:
    """The functions of a driver that `gpuviz.frameworks.cupy` uses."""

    version = 13000

    def device_name(self, device):
        return f"GPU {device}"

    def device_uuid(self, device):
        return f"00000000-0000-0000-0000-00000000000{device}"

    def total_memory(self, _):
        return 16 << 30

    def multiprocessors(self, _):
        return 132

    def memory_bandwidth(self, _):
        return 3_352_320_000_000


@pytest.fixture
def observing(monkeypatch):
    """Return a function that creates a recorder of CuPy's allocator, as on a machine with a GPU."""
    monkeypatch.setattr(cupy_framework, "cuda_driver", Driver)
    monkeypatch.setattr(driver_devices, "cuda_driver", Driver)
    monkeypatch.setattr(process_memory, "cuda_driver", Driver)
    monkeypatch.setattr(cupy_framework, "versions", dict)
    monkeypatch.setattr(cupy_framework, "_arguments_of_state", state)
    monkeypatch.setattr(cupy_framework.ObservingSource, "sample", lambda _: [])
    previous = cupy.cuda.get_allocator()
    yield lambda: record(cupy_framework.ObservingSource(stacks=True))
    cupy.cuda.set_allocator(previous)


class Block(memory.UnownedMemory):
    """Memory of CuPy in a buffer of RMM, which is freed with it."""

    def __init__(self, buffer):
        super().__init__(buffer.address, buffer.size, None, 0)
        finalizer = weakref.finalize(self, buffer.free)
        finalizer.atexit = False


def test_an_array_in_rmms_memory_is_recorded_once_and_as_cupys(rmm, pool, observing):
    cupy.cuda.set_allocator(lambda size: memory.MemoryPointer(Block(Buffer(rmm, size)), 0))

    with observing() as recorder:
        array = cupy.cuda.alloc(1000)
        buffer = Buffer(rmm, 77)
        del array
        buffer.free()

    events = [
        (action, address, framework)
        for action, _, address, *_, framework in events_of(recorder.recording)
    ]
    assert events == [
        ("alloc", FIRST, "cupy"),
        ("alloc", SECOND, "rmm"),
        ("free_requested", FIRST, "cupy"),
        ("free_completed", FIRST, "cupy"),
        ("free_requested", SECOND, "rmm"),
        ("free_completed", SECOND, "rmm"),
    ]
    assert rmm.devices[0] is pool


def test_a_device_that_only_rmm_uses_is_in_the_recording(rmm, pool, observing):
    with observing() as recorder:
        Buffer(rmm, 1000, device=1)

    recording = recorder.recording
    assert [row["id"] for row in recording.table("devices").to_pylist()] == [1]
    assert pool.calls == []


def test_an_array_is_rmms_once_the_program_replaces_the_observed_allocator(rmm, pool, observing):
    def allocate(size):
        return memory.MemoryPointer(Block(Buffer(rmm, size)), 0)

    cupy.cuda.set_allocator(allocate)
    with observing() as recorder:
        cupy.cuda.set_allocator(allocate)
        array = cupy.cuda.alloc(1000)
        del array

    events = events_of(recorder.recording)
    assert [(action, owner) for action, *_, owner in events] == [
        ("alloc", "rmm"),
        ("free_requested", "rmm"),
        ("free_completed", "rmm"),
    ]
    assert pool.next == FIRST
