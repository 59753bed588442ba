"""gpuviz keeps no references to objects that a program has released: arrays, exceptions, pools.

The garbage collector is disabled, because reference cycles would delay the release of memory.
"""

import gc
import subprocess
import sys
import weakref

import cupy
import pytest
from cupy.cuda import memory

from gpuviz import _core
from gpuviz.frameworks import cupy as framework
from gpuviz.frameworks import driver_devices, process_memory
from gpuviz.recorder.recorder import Recorder
from tests.unit.frameworks.simulated_cupy import ClientSource, ObservedSource, state

GIB = 1 << 30


@pytest.fixture(autouse=True)
def without_garbage_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Local:
    """An object referred to by a frame."""


class Pool:
    """A program's pool that returns its blocks to a simulated device."""

    def __init__(self, allocator=None):
        device = _core.SimulatedDevice(capacity=16 * GIB)
        settings = _core.AllocatorSettings.parse("")
        self.allocator = allocator or _core.CachingAllocator(device, settings)

    def malloc(self, size):
        try:
            address = self.allocator.allocate(size)
        except MemoryError:
            raise memory.OutOfMemoryError(size, 0) from None
        return memory.MemoryPointer(Block(address, size, self.allocator), 0)


class Block(memory.UnownedMemory):
    """A block that is freed with its last reference."""

    def __init__(self, address, size, allocator):
        super().__init__(address, size, None, 0)
        self.freed = weakref.finalize(self, allocator.free, address)
        self.freed.atexit = False


class Observed(ObservedSource):
    """A program's pool with an observer."""

    def _allocate(self, size):
        pointer = Pool(self.allocators[0]).malloc(size)
        self.total = self.allocators[0].memory_stats()["reserved_bytes.all.current"]
        return pointer


@pytest.fixture(params=[ClientSource, Observed], ids=["caching", "observe"])
def source(request):
    return request.param()


def live_bytes(source):
    return source.allocators[0].memory_stats()["requested_bytes.all.current"]


def handled_failure(source):
    """Fail, handle the exception, and return weak references to the objects in use."""
    local = Local()
    try:
        source.malloc(15 * GIB)
    except memory.OutOfMemoryError as error:
        return weakref.ref(error), weakref.ref(local), str(error)
    raise AssertionError


def test_a_handled_failure_keeps_neither_its_exception_nor_its_frames(source, tmp_path):
    recorder = Recorder(source, tmp_path / "run.gpuviz", stacks=True, max_events=1000)
    with recorder:
        held = [source.malloc(GIB) for _ in range(9)]
        for number in range(5):
            error, local, text = handled_failure(source)

            explained = "Details: " in text
            assert (explained, error(), local()) == (number < 3, None, None)
        assert len(recorder.out_of_memory_pages) == 3
        held.pop()
        assert live_bytes(source) == 8 * GIB
        del held
        assert live_bytes(source) == 0


def test_arrays_of_the_frames_that_a_failure_passed_are_freed_with_them(source, tmp_path):
    def work():
        kept = source.malloc(9 * GIB)
        source.malloc(15 * GIB)
        return kept

    with Recorder(source, tmp_path / "run.gpuviz", stacks=True, max_events=1000):
        with pytest.raises(memory.OutOfMemoryError):
            work()

        assert live_bytes(source) == 0
        assert source.malloc(15 * GIB).mem.size == 15 * GIB


class Driver:
    """The functions of a driver that `gpuviz.frameworks.cupy` uses."""

    version = 13000

    def device_name(self, device):
        return f"GPU {device}"

    def device_uuid(self, device):
        return f"00000000-0000-0000-0000-00000000000{device}"

    def total_memory(self, _):
        return 16 * GIB

    def multiprocessors(self, _):
        return 132

    def memory_bandwidth(self, _):
        return 3_352_320_000_000


@pytest.fixture
def observed(monkeypatch, tmp_path):
    """Return a function that creates a recorder of CuPy's allocator, as on a machine with a GPU."""
    monkeypatch.setattr(framework, "cuda_driver", Driver)
    monkeypatch.setattr(driver_devices, "cuda_driver", Driver)
    monkeypatch.setattr(process_memory, "cuda_driver", Driver)
    monkeypatch.setattr(framework, "versions", dict)
    monkeypatch.setattr(framework, "_arguments_of_state", state)
    monkeypatch.setattr(framework.ObservingSource, "sample", lambda _: [])
    previous = cupy.cuda.get_allocator()

    def recorder():
        source = framework.ObservingSource(stacks=True)
        return Recorder(source, tmp_path / "run.gpuviz", stacks=True, max_events=1000)

    yield recorder
    cupy.cuda.set_allocator(previous)


def test_a_pool_goes_when_the_program_drops_it_after_its_recording(observed):
    pool = Pool()
    seen = weakref.ref(pool)
    cupy.cuda.set_allocator(pool.malloc)
    with observed() as recorder:
        held = cupy.cuda.alloc(9 * GIB)
        with pytest.raises(memory.OutOfMemoryError, match=r"Unknown: 9\.00 GiB were in use"):
            cupy.cuda.alloc(8 * GIB)
        del held
    assert cupy.cuda.get_allocator() == pool.malloc

    cupy.cuda.set_allocator(None)
    del pool

    assert seen() is None
    recording = recorder.recording
    assert [row["id"] for row in recording.table("devices").to_pylist()] == [0]
    assert [each.allocated for each in recording.out_of_memory()] == [9 * GIB]


def test_the_allocator_that_cupy_has_at_the_start_is_observed(observed):
    recorder = observed()
    pool = Pool()
    cupy.cuda.set_allocator(pool.malloc)

    with recorder:
        held = cupy.cuda.alloc(GIB)

    assert pool.allocator.memory_stats()["requested_bytes.all.current"] == held.mem.size == GIB
    assert recorder.recording.manifest.allocator_name.endswith(".Pool")


def test_a_pool_stays_as_long_as_what_it_handed_out(observed):
    pool = Pool()
    seen, allocator = weakref.ref(pool), pool.allocator
    cupy.cuda.set_allocator(pool.malloc)
    with observed():
        first, second = cupy.cuda.alloc(GIB), cupy.cuda.alloc(GIB)
    cupy.cuda.set_allocator(None)
    del pool, first

    assert (seen() is None, second.mem.size) == (False, GIB)
    assert allocator.memory_stats()["requested_bytes.all.current"] == GIB
    del second
    assert seen() is None
    assert allocator.memory_stats()["requested_bytes.all.current"] == 0


def test_what_the_program_took_for_its_allocator_works_after_the_recording(observed):
    pool = Pool()
    seen = weakref.ref(pool)
    cupy.cuda.set_allocator(pool.malloc)
    with observed() as recorder:
        taken = cupy.cuda.get_allocator()
    cupy.cuda.set_allocator(None)
    del pool

    assert taken(GIB).mem.size == GIB
    assert recorder.recording.table("memory_events").num_rows == 0
    del taken
    assert seen() is None


def observer_of(malloc):
    """Return a weak reference to an observer, and the function that keeps it."""
    observer = _core.CupyObserver(
        memory_module=memory, **state(), allocator=malloc, total_bytes=None
    )
    return weakref.ref(observer), _core.observed_malloc(lambda: observer)


def test_blocks_that_free_each_other_may_be_the_last_ones():
    class Holder(memory.UnownedMemory):
        """A block whose deletion frees another one."""

    others = []

    def malloc(size):
        made = Holder(1 << 20 << len(others), size, None, 0)
        finalizer = weakref.finalize(made, others.clear)
        finalizer.atexit = False
        return memory.MemoryPointer(made, 0)

    seen, taken = observer_of(malloc)
    first = taken(1000)
    others.append(taken(1000))
    del taken

    assert (len(others), seen() is None) == (1, False)
    del first
    assert (others, seen()) == ([], None)


def test_observed_memory_that_lives_until_the_interpreter_exits_is_freed_quietly():
    program = """
import os, sys
from cupy.cuda import memory
from gpuviz import _core
from tests.unit.frameworks.simulated_cupy import state
class Late(memory.UnownedMemory):
    def __del__(self, write=os.write): write(1, b"freed\\n")
def malloc(size): return memory.MemoryPointer(Late(1 << 20, size, None, 0), 0)
observer = _core.CupyObserver(
    memory_module=memory, **state(), allocator=malloc, total_bytes=None
)
sys.kept_for_ever = [_core.observed_malloc(lambda: observer)(1000)]
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "freed\n", "")


def test_pinned_memory_that_lives_until_the_interpreter_exits_is_no_error():
    program = """
import sys
import cupy
from gpuviz import _core
from tests.unit.frameworks.simulated_cupy import state
device = _core.SimulatedDevice(1 << 30)
host, caching = _core.HostAllocator(device), _core.CachingAllocator(device)
allocator = _core.PinnedAllocator(
    pointer_type=cupy.cuda.PinnedMemoryPointer, **state(), open_host=lambda _: host,
    open_device=lambda _: caching, refused=MemoryError,
)
malloc = _core.cupy_malloc_pinned(lambda: allocator)
sys.kept_for_ever = [malloc(1000)]
del host, caching, allocator, malloc
print("done")
"""
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "done\n", "")
