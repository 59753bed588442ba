"""Memory resources like RMM's, and recordings of what they do."""

from gpuviz.frameworks.libraries import RecordedLibraries
from gpuviz.recorder.recorder import Recorder
from tests.unit.recorder.simulated_source import SimulatedSource

FIRST, SECOND = 0x1000, 0x2000


class Stream:
    """A stream of RMM."""

    def __init__(self, handle):
        self.handle = handle

    def __cuda_stream__(self):
        return 0, self.handle


class CudaMemoryResource:
    """The default resource, which returns the next address."""

    def __init__(self):
        self.calls = []
        self.next = FIRST

    def allocate(self, size, stream):
        self.calls.append(("allocate", size, stream))
        address, self.next = self.next, self.next + 0x1000
        return address

    def deallocate(self, address, size, stream):
        self.calls.append(("deallocate", address, size, stream))
        self.next = address


class PoolMemoryResource(CudaMemoryResource):
    """A resource that a program has chosen."""


class FullMemoryResource(CudaMemoryResource):
    """A resource without memory."""

    error = MemoryError("none left")

    def allocate(self, *_):
        raise self.error


class StatisticsResourceAdaptor(CudaMemoryResource):
    """What RMM's own functions look for."""


class CallbackMemoryResource:
    """A resource that calls functions."""

    def __init__(self, allocate, deallocate):
        self.allocate = allocate
        self.deallocate = deallocate


class Resources:
    """rmm.mr."""

    CudaMemoryResource = CudaMemoryResource
    CallbackMemoryResource = CallbackMemoryResource

    def __init__(self):
        self.devices = {0: CudaMemoryResource(), 1: CudaMemoryResource()}

    def get_per_device_resource(self, device):
        return self.devices[device]

    def set_per_device_resource(self, device, resource):
        self.devices[device] = resource


class Source(SimulatedSource):
    """A simulated device, and the libraries of a process that imports RMM."""

    def __init__(self, *, only_observe=False):
        super().__init__()
        self.libraries = RecordedLibraries(only_observe=only_observe)

    def describe(self, session):
        super().describe(session)
        self.libraries.describe(session)

    def begin(self, session):
        super().begin(session)
        self.libraries.begin()

    def end(self):
        return (*super().end(), *self.libraries.end())


def record(source=None):
    return Recorder(source or Source(), None, stacks=True, max_events=1000)


def events_of(recording):
    """Return (action, device, address, size, requested size, stream, framework) of each event."""
    handles = {row["id"]: row["handle"] for row in recording.table("streams").to_pylist()}
    names = ("action", "device", "address", "size", "requested_size")
    return [
        (*(row[name] for name in names), handles[row["stream"]], row["framework"])
        for row in recording.table("memory_events").to_pylist()
    ]
