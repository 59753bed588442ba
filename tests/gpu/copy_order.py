"""What copies between two GPUs wait for: ``python -m tests.gpu.copy_order [FOLDER]``.

Every way to copy is tried on every stream, staged through the host and by peer access. A kernel
that waits for the host holds back either the stream before the copy, or the copy; after that,
either the copy or a kernel behind it has run or it has not. Nothing is judged by a time.
"""

import ctypes
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

import gpuviz
from tests.gpu.without_host import without_host

KERNELS = r"""
extern "C" __global__ void hold(volatile int* is_open) {
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
    while (*is_open == 0 && now - begin < 3000000000LL);
}
extern "C" __global__ void mark(volatile int* reached) { *reached = 1; __threadfence_system(); }
extern "C" __global__ void look(const volatile unsigned char* at, volatile int* found) {
    *found = *at;
    __threadfence_system();
}
"""
KINDS = ("default", "blocking", "non_blocking")
STREAMS = tuple(product((0, 1), KINDS))
SIZES = (1 << 10, 4 << 20)
RECORDED_SIZES = (4, 1 << 20, 16 << 20)
LONG_ENOUGH_S = 0.012
_HOST_PORTABLE_MAPPED = 3
_DEFAULT_COPY = 4


@dataclass(frozen=True)
class Way:
    """A way to copy from GPU 0 to GPU 1: the function, and the stream it is issued on."""

    function: str
    device: int
    kind: str

    @property
    def text(self) -> str:
        return f"{self.function} on GPU {self.device}, {self.kind}"


WAYS = [
    *(Way(name, device, "default") for name in ("memcpy", "memcpyPeer") for device in (0, 1)),
    *(Way(name, *stream) for name in ("memcpyAsync", "memcpyPeerAsync") for stream in STREAMS),
]


class Machine:
    """Two GPUs with a stream of each kind, and a byte in pinned memory for each question."""

    def __init__(self) -> None:
        import cupy

        self.cupy, self.runtime = cupy, cupy.cuda.runtime
        address = self.runtime.hostAlloc(4096, _HOST_PORTABLE_MAPPED)
        buffer = (ctypes.c_int * 1024).from_address(address)
        self.flags, self.address = np.frombuffer(buffer, np.int32), address
        self.streams: dict[tuple[int, str], Any] = {}
        self.observers, self.kernels = [], []
        for device in (0, 1):
            with cupy.cuda.Device(device):
                self.streams[device, "default"] = cupy.cuda.Stream.null
                self.streams[device, "blocking"] = cupy.cuda.Stream()
                self.streams[device, "non_blocking"] = cupy.cuda.Stream(non_blocking=True)
                self.observers.append(cupy.cuda.Stream(non_blocking=True))
                module = cupy.RawModule(code=KERNELS)
                self.kernels.append({n: module.get_function(n) for n in ("hold", "mark", "look")})
        self.value = 0
        self.allocate()

    def allocate(self) -> None:
        """Allocate memory on both GPUs."""
        self.memory = []
        for device in (0, 1):
            with self.cupy.cuda.Device(device):
                self.memory.append(self.cupy.zeros(max(*SIZES, *RECORDED_SIZES), "u1"))
                self.runtime.deviceSynchronize()

    def synchronize(self) -> None:
        for device in (0, 1):
            with self.cupy.cuda.Device(device):
                self.runtime.deviceSynchronize()

    def launch(self, name: str, stream: tuple[int, str], *arguments: int) -> None:
        """Launch a kernel on a stream of a device."""
        with self.cupy.cuda.Device(stream[0]):
            pointers = tuple(np.uint64(each) for each in arguments)
            self.kernels[stream[0]][name]((1,), (1,), pointers, stream=self.streams[stream])

    def flag(self, number: int) -> int:
        return self.address + 4 * number

    def copy(self, way: Way, size: int) -> None:
        """Copy from GPU 0 to GPU 1; the current device is that of the stream."""
        source, target = (each.data.ptr for each in self.memory)
        stream = self.streams[way.device, way.kind].ptr
        with self.cupy.cuda.Device(way.device):
            if way.function == "memcpy":
                self.runtime.memcpy(target, source, size, _DEFAULT_COPY)
            elif way.function == "memcpyAsync":
                self.runtime.memcpyAsync(target, source, size, _DEFAULT_COPY, stream)
            elif way.function == "memcpyPeer":
                self.runtime.memcpyPeer(target, 1, source, 0, size)
            else:
                self.runtime.memcpyPeerAsync(target, 1, source, 0, size, stream)

    def prepare(self) -> None:
        """Wait for everything, and give the source a value that the target does not have."""
        self.value = self.value % 250 + 1
        for device, value in ((0, self.value), (1, 0)):
            with self.cupy.cuda.Device(device):
                self.memory[device].fill(value)
                self.runtime.deviceSynchronize()
        self.flags[:] = 0

    def is_copied(self, size: int) -> bool:
        """Return whether the last byte of the copy is at the target."""
        self.flags[3] = 0
        observer = self.observers[1]
        with self.cupy.cuda.Device(1):
            pointers = (np.uint64(self.memory[1].data.ptr + size - 1), np.uint64(self.flag(3)))
            self.kernels[1]["look"]((1,), (1,), pointers, stream=observer)
            observer.synchronize()
        return int(self.flags[3]) == self.value

    def enable_peer_access(self) -> None:
        for device in (0, 1):
            with self.cupy.cuda.Device(device):
                self.runtime.deviceEnablePeerAccess(1 - device)


@dataclass(frozen=True)
class Answer:
    """What was seen of a copy and another stream."""

    waits: bool  # for work that the stream had before
    returned: bool  # the call, while that work was still running
    holds_back: bool  # work that the stream got behind the copy


def ask(machine: Machine, way: Way, other: tuple[int, str], size: int) -> Answer:
    """Return what a copy and a stream wait for."""
    machine.prepare()
    machine.launch("hold", other, machine.flag(0))
    with _in_thread(lambda: machine.copy(way, size)) as call:
        call.join(LONG_ENOUGH_S)
        returned = not call.is_alive()
        time.sleep(LONG_ENOUGH_S)
        waits = not machine.is_copied(size)
        machine.flags[0] = 1
    machine.prepare()
    machine.launch("hold", (way.device, way.kind), machine.flag(0))
    with _in_thread(lambda: machine.copy(way, size)) as call:
        call.join(LONG_ENOUGH_S)
        machine.launch("mark", other, machine.flag(1))
        time.sleep(LONG_ENOUGH_S)
        holds_back = machine.flags[1] == 0
        machine.flags[0] = 1
    return Answer(waits, returned, bool(holds_back))


def is_covered_by_an_event(machine: Machine, way: Way, size: int) -> bool:
    """Return whether a stream of the destination that waits for an event sees the whole copy."""
    machine.prepare()
    cupy = machine.cupy
    machine.launch("hold", (way.device, way.kind), machine.flag(0))
    machine.copy(way, size)
    with cupy.cuda.Device(way.device):
        event = machine.streams[way.device, way.kind].record()
    machine.flags[0] = 1
    with cupy.cuda.Device(1):
        machine.observers[1].wait_event(event)
    return machine.is_copied(size)


class _in_thread:  # noqa: N801 - reads as a function
    """A call in a thread of its own, which has returned at the end of the block."""

    def __init__(self, call: Callable[[], None]) -> None:
        self.thread = threading.Thread(target=call)

    def __enter__(self) -> threading.Thread:
        self.thread.start()
        return self.thread

    def __exit__(self, *_: object) -> None:
        self.thread.join()


def rows(machine: Machine, mode: str) -> Iterator[str]:
    """Yield a line for each way to copy and size."""
    for way, size in product(WAYS, SIZES):
        machine.copy(way, size)  # the first one prepares a way through the host
        answers = {other: ask(machine, way, other, size) for other in STREAMS}
        parts = [
            f"{'W' if each.waits else '.'}{'H' if each.holds_back else '.'}"
            f"{'r' if each.returned else '-'}"
            for each in answers.values()
        ]
        event = ""
        if "Async" in way.function:
            event = f" event {is_covered_by_an_event(machine, way, size)}"
        yield f"{mode:7} {way.text:43} {size:8} {' '.join(parts)}{event}"


def record(machine: Machine, path: Path) -> None:
    """Record one copy of each way and size, and one whose stream is of another GPU than current."""
    with gpuviz.record() as recorder:
        machine.allocate()
        for way, size in product(WAYS, RECORDED_SIZES):
            with gpuviz.range(f"{way.text}, {size}"):
                machine.copy(way, size)
                machine.synchronize()
        later = machine.streams[1, "non_blocking"]
        with gpuviz.range("wait while GPU 0 is current"):
            machine.copy(Way("memcpyPeerAsync", 0, "non_blocking"), 1 << 20)
            with machine.cupy.cuda.Device(0):
                later.wait_event(machine.streams[0, "non_blocking"].record())
            machine.launch("look", (1, "non_blocking"), machine.memory[1].data.ptr, machine.flag(3))
            machine.synchronize()
    without_host(recorder.recording).save(path, overwrite=True)


def main(folder: Path | None) -> int:
    """Print the tables, and record the copies if there is a folder."""
    machine = Machine()
    names = " ".join(f"{device}{kind[0:2]}" for device, kind in STREAMS)
    print("W: waits for earlier work, H: holds back later work, r: the call returned before that")
    print(f"{'':60} {names}")
    for mode in ("staged", "direct"):
        if mode == "direct":
            machine.enable_peer_access()
        for row in rows(machine, mode):
            print(row, flush=True)
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
            record(machine, folder / f"copies_{mode}.gpuviz")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if sys.argv[1:] else None))
