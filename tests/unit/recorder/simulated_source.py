"""A source of memory events that needs no GPU: caching allocators on simulated devices."""

from gpuviz import _core

CAPACITY = 1 << 34


class SimulatedSource:
    """One caching allocator for each simulated device; see `gpuviz.recorder.source.Source`."""

    allocator = "caching"
    allocator_name = "simulated"
    framework = "cupy"
    memory = "device"

    def __init__(self, devices=1):
        self.simulated = [_core.SimulatedDevice(CAPACITY, ordinal) for ordinal in range(devices)]
        self.allocators = [
            _core.CachingAllocator(device, _core.AllocatorSettings.parse(""))
            for device in self.simulated
        ]
        self.calls = []

    def allocate(self, size, device=0):
        return self.allocators[device].allocate(size)

    def free(self, address, device=0):
        self.allocators[device].free(address)

    def again(self):
        """Return a source for another recording of the same allocators."""
        other = type(self)(0)
        other.simulated, other.allocators = self.simulated, self.allocators
        return other

    def tables(self):
        self.calls.append("tables")
        return {}

    def describe(self, session):
        self.calls.append("describe")
        for device, allocator in enumerate(self.allocators):
            allocator.describe_state(session.sink(device), stacks_are_valid=False)

    def begin(self, session):
        self.calls.append("begin")
        for device, allocator in enumerate(self.allocators):
            allocator.attach(session.sink(device))

    def devices(self, active):
        return [
            {
                "id": device,
                "name": "simulated",
                "uuid": "",
                "multiprocessors": 0,
                "memory_bandwidth": 0,
                "total_memory": CAPACITY,
                "kind": "simulated",
            }
            for device in sorted({*range(len(self.allocators)), *active})
        ]

    def sample(self):
        return [(number, device.used) for number, device in enumerate(self.simulated)]

    def now_ns(self):
        return None

    def end(self):
        self.calls.append("end")
        for allocator in self.allocators:
            allocator.detach()
        return ()

    def manifest_fields(self):
        return {"simulated": True}
