"""Programs about what the allocator reserves, each with its improvement.

``python reserved_program.py PROGRAM RECORDING [SETTINGS]`` records one in a new process, whose
allocator has nothing cached.
"""

import sys
from contextlib import suppress
from typing import Any

import cupy as cp

import gpuviz

# The sizes are parts of the device's memory, because gpuviz reports only what may run out.
UNIT = cp.cuda.Device().mem_info[1] // 320 >> 21 << 21
ROUNDS = 12
SPIN = cp.RawKernel(
    """
    extern "C" __global__ void spin(long long cycles, char* array) {
        const long long begin = clock64();
        while (clock64() - begin < cycles) {}
        *array = 1;
    }
    """,
    "spin",
)


def empty(units: int) -> Any:
    return cp.empty(units * UNIT, cp.uint8)


def work(array: Any, milliseconds: float) -> None:
    SPIN((1,), (1,), (int(milliseconds * 1.7e6), array))


def small_before_large() -> object:
    small = [empty(16) for _ in range(8)]
    del small
    return [empty(32) for _ in range(4)]


def parts_of_a_segment() -> object:
    segment = empty(240)
    del segment
    blocks = [empty(60) for _ in range(4)]
    blocks[0] = blocks[2] = None
    return [*blocks, empty(100)]


def emptied(*, empties: bool = True) -> None:
    for _ in range(ROUNDS):
        arrays = [empty(1), empty(3)]
        for array in arrays:
            work(array, 0.5)
        del array, arrays
        if empties:
            gpuviz.empty_cache()
    cp.cuda.Device().synchronize()


def kept() -> None:
    emptied(empties=False)


def parked(*, waits: bool = False) -> None:
    side, now = cp.cuda.Stream(non_blocking=True), cp.cuda.get_current_stream()
    for _ in range(6):
        array = empty(40)
        side.wait_event(now.record())
        with side:
            work(array, 30)
        if waits:
            now.wait_event(side.record())
        else:
            gpuviz.record_stream(array, side)
        del array
    cp.cuda.Device().synchronize()


def waiting() -> None:
    parked(waits=True)


def main(name: str, path: str, settings: str = "") -> None:
    programs = [small_before_large, parts_of_a_segment, emptied, kept, parked, waiting]
    program: Any = next(each for each in programs if each.__name__ == name)
    if settings:
        gpuviz.set_allocator_settings(settings)
    SPIN.compile()
    with gpuviz.record(path), suppress(cp.cuda.memory.OutOfMemoryError):
        program()


if __name__ == "__main__":
    main(*sys.argv[1:])
