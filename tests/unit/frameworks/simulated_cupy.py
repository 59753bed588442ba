"""Recorder sources with CuPy's own objects on simulated devices."""

from types import SimpleNamespace

from cupy.cuda import memory

from gpuviz import _core
from gpuviz.frameworks import cupy as framework
from tests.unit.recorder.simulated_source import SimulatedSource


def state(current_device=lambda: 0):
    return {
        "runtime_module": SimpleNamespace(),
        "stream_module": SimpleNamespace(),
        "current_device": current_device,
        "current_stream": lambda: 0,
    }


class ClientSource(SimulatedSource):
    """A simulated device for CuPy's own objects."""

    def __init__(self):
        super().__init__()
        self.client = _core.CupyAllocator(
            memory_module=memory,
            **state(),
            open_device=lambda _: self.allocators[0],
            out_of_memory=framework._out_of_memory,
        )
        self.malloc = _core.cupy_malloc(lambda: self.client)
        self.failed_frees = framework.FailedFrees(self.client)

    def begin(self, session):
        super().begin(session)
        self.client.set_session(session)

    def end(self):
        self.client.set_session(None)
        return (*super().end(), *self.failed_frees.notes())


class ObservedSource(SimulatedSource):
    """A program's pool that raises a given exception."""

    allocator = "observe"

    def __init__(self):
        super().__init__()
        self.error = None
        self.total = 0
        self.observer = _core.CupyObserver(
            memory_module=memory,
            **state(),
            allocator=self._allocate,
            total_bytes=lambda: self.total,
            out_of_memory=framework._observed_out_of_memory,
        )
        self.malloc = _core.observed_malloc(lambda: self.observer)

    def _allocate(self, size):
        if self.error is not None:
            self.total = 0
            raise self.error
        self.total += size
        address = self.allocators[0].allocate(size)
        return memory.MemoryPointer(memory.UnownedMemory(address, size, self, 0), 0)

    def describe(self, session):
        pass

    def begin(self, session):
        self.observer.set_session(session)

    def end(self):
        self.observer.set_session(None)
        return ()
