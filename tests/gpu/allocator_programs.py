"""Random allocations and frees through a framework, compared with those of the raw allocator.

``python -m tests.gpu.allocator_programs FRAMEWORK OPERATIONS SEED`` prints a JSON object: how many
operations were made, the number of events, the first difference, and how many blocks had wrong
contents.
"""

import ctypes
import inspect
import json
import random
import sys
from itertools import zip_longest

import cupy
import numpy as np

import gpuviz
from gpuviz import _core
from gpuviz.data.tables import ACTIONS

STREAMS = 4
IGNORED = {"memory_limit", "record_stream"}
LEGACY = 1  # CU_STREAM_LEGACY
SAMPLES = 64  # bytes compared at each end of a block
_driver = ctypes.CDLL("libcuda.so.1")


def check(result: int) -> None:
    if result:
        raise RuntimeError(f"CUDA error {result}")


def fill(address: int, value: int, size: int, stream: int) -> None:
    check(
        _driver.cuMemsetD8Async(
            ctypes.c_uint64(address),
            ctypes.c_ubyte(value),
            ctypes.c_size_t(size),
            ctypes.c_void_p(stream),
        )
    )


def is_filled(address: int, value: int, size: int, stream: int) -> bool:
    """Return whether both ends of a block have the value, once the stream's work is done."""
    check(_driver.cuStreamSynchronize(ctypes.c_void_p(stream)))
    count = min(size, SAMPLES)
    for begin in (address, address + size - count):
        host = ctypes.create_string_buffer(count)
        check(_driver.cuMemcpyDtoH_v2(host, ctypes.c_uint64(begin), ctypes.c_size_t(count)))
        if host.raw != bytes([value]) * count:
            return False
    return True


class Torch:
    """Tensors of bytes, on several streams."""

    last = None

    def __init__(self):
        import torch

        gpuviz.allocators.torch.install()
        self.torch = torch
        self.streams = [torch.cuda.default_stream()]
        self.streams += [torch.cuda.Stream() for _ in range(STREAMS - 1)]
        self.handles = [stream.cuda_stream for stream in self.streams]

    def allocate(self, size, stream):
        with self.torch.cuda.stream(self.streams[stream]):
            return self.torch.empty(size, dtype=self.torch.uint8, device="cuda")

    def address(self, tensor):
        return tensor.data_ptr()

    def use(self, tensor, stream):
        tensor.record_stream(self.streams[stream])

    def empty_cache(self):
        self.torch.cuda.empty_cache()


class Numba:
    """Device arrays of bytes, which belong to the default stream."""

    last = LEGACY  # blocks are freed after the work on it, as Numba reports no streams
    use = None

    def __init__(self):
        from numba import cuda

        gpuviz.allocators.numba.install()
        self.cuda = cuda
        self.handles = [0]

    def allocate(self, size, _):
        return self.cuda.device_array(size, "u1")

    def address(self, array):
        return array.device_ctypes_pointer.value

    def empty_cache(self):
        gpuviz.empty_cache()


class CudaCore:
    """Buffers, on several streams."""

    use = None

    def __init__(self):
        import cuda.core

        self.device = cuda.core.Device(0)
        self.device.set_current()
        gpuviz.allocators.cuda_core.install()
        # Before 1.1 buffers are closed on the default stream.
        takes_stream = "stream" in inspect.signature(cuda.core.Buffer.from_handle).parameters
        self.last = None if takes_stream else 0
        self.streams = [self.device.default_stream]
        self.streams += [self.device.create_stream() for _ in range(STREAMS - 1)]
        self.handles = [0, *(int(stream.handle) for stream in self.streams[1:])]

    def allocate(self, size, stream):
        return self.device.allocate(size, stream=self.streams[stream])

    def address(self, buffer):
        return int(buffer.handle)

    def empty_cache(self):
        gpuviz.empty_cache()


class Rmm:
    """Buffers, on several streams."""

    last = None
    use = None

    def __init__(self):
        import rmm

        gpuviz.allocators.rmm.install()
        self.rmm = rmm
        self.streams = [rmm.pylibrmm.stream.Stream() for _ in range(STREAMS)]
        self.handles = [stream.__cuda_stream__()[1] for stream in self.streams]

    def allocate(self, size, stream):
        return self.rmm.DeviceBuffer(size=size, stream=self.streams[stream])

    def address(self, buffer):
        return buffer.ptr

    def empty_cache(self):
        gpuviz.empty_cache()


FRAMEWORKS = {"torch": Torch, "numba": Numba, "cuda_core": CudaCore, "rmm": Rmm}


def operations(count, streams, seed, *, uses):
    """Yield ``(kind, number, value)``, where the number is a block's."""
    source = random.Random(seed)
    live = []
    made = 0
    for _ in range(count):
        kind = source.random()
        if kind < 0.001:
            yield "empty_cache", 0, 0
        elif kind < 0.05 and live and uses:
            yield "use", source.choice(live), source.randrange(streams)
        elif live and (kind < 0.45 or len(live) > 400):
            yield "free", live.pop(source.randrange(len(live))), 0
        else:
            size = source.choice([source.randint(1, 4096), source.randint(1, 3 << 20)])
            yield "allocate", (made, size), source.randrange(streams)
            live.append(made)
            made += 1
    for block in live:
        yield "free", block, 0


def comparable(columns, handles):
    """Return the events that the allocator's state determines, with the handles of streams."""
    names = ("action", "address", "size", "requested_size", "stream")
    return [
        [action, address, size, requested, handles(stream)]
        for action, address, size, requested, stream in zip(
            *(columns[name] for name in names), strict=True
        )
        if action not in IGNORED
    ]


def recorded(recording):
    """Return the events of a recording."""
    handles = {row["id"]: row["handle"] for row in recording.table("streams").to_pylist()}
    table = recording.table("memory_events").slice(recording.manifest.initial_events)
    columns = {name: table[name].to_pylist() for name in table.column_names}
    return comparable(columns, handles.__getitem__)


def expected(program, segments, handles, last):
    """Return the events of the same operations on the raw allocator, which gets these segments."""
    device = _core.RecordedDevice(1 << 40, np.array(segments, np.uint64), np.array([], np.uint64))
    allocator = _core.CachingAllocator(device, _core.AllocatorSettings.parse(""))
    log = _core.EventLog()
    allocator.attach(log)
    addresses = {}
    for kind, what, value in program:
        if kind == "allocate":
            addresses[what[0]] = allocator.allocate(what[1], handles[value])
        elif kind == "free":
            if last is not None:
                allocator.record_stream(addresses[what], last)
            allocator.free(addresses[what])
        elif kind == "use":
            allocator.record_stream(addresses[what], handles[value])
        else:
            allocator.empty_cache()
    columns = {name: list(column) for name, column in log.events().items()}
    columns["action"] = [ACTIONS[action] for action in columns["action"]]
    return comparable(columns, int)


def made(framework, program):
    """Make the operations, and return how many blocks had wrong contents."""
    blocks, wrong = {}, 0
    for number, (kind, what, value) in enumerate(program):
        if kind == "allocate":
            block = framework.allocate(what[1], value)
            handle = framework.handles[value]
            blocks[what[0]] = (block, number % 251, what[1], handle)
            fill(framework.address(block), number % 251, what[1], handle)
        elif kind == "free":
            block, *contents = blocks.pop(what)
            wrong += not is_filled(framework.address(block), *contents)
            del block
        elif kind == "use":
            framework.use(blocks[what][0], value)
        else:
            framework.empty_cache()
        # Events of uses have then completed, as they have on the device without a GPU.
        check(_driver.cuCtxSynchronize())
    return wrong


def run(name, count, seed):
    cupy.cuda.Device(0).use()
    cupy.cuda.runtime.free(0)
    framework = FRAMEWORKS[name]()
    handles = framework.handles
    program = list(operations(count, len(handles), seed, uses=framework.use is not None))
    with gpuviz.record(streams=False) as recorder:
        wrong = made(framework, program)
    got = recorded(recorder.recording)
    segments = [address for action, address, *_ in got if action == "segment_alloc"]
    wanted = expected(program, segments, handles, framework.last)
    differences = (
        [place, one, other]
        for place, (one, other) in enumerate(zip_longest(got, wanted))
        if one != other
    )
    return {
        "operations": len(program),
        "events": len(got),
        "difference": next(differences, None),
        "wrong": wrong,
        "dropped": recorder.recording.manifest.dropped,
        "left": gpuviz.memory_allocated(0),
    }


def main() -> None:
    name, count, seed = sys.argv[1:]
    print(json.dumps(run(name, int(count), int(seed))))  # noqa: T201


if __name__ == "__main__":
    main()
