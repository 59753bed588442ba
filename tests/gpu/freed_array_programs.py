"""CuPy programs that free an array while another stream may still use it.

Each returns whether its numbers came out right.
"""

import cupy as cp
import numpy as np

COUNT = 16 << 20
SPIN = cp.RawKernel(
    'extern "C" __global__ void hold(long long cycles) {'
    "    for (long long start = clock64(); clock64() - start < cycles;) {}"
    "}",
    "hold",
)
CYCLES_PER_MS = 1_700_000
# None where the module is only imported.
S, T = (cp.cuda.Stream(non_blocking=True) if cp.cuda.is_available() else None for _ in range(2))


def settle():
    cp.cuda.Device().synchronize()


def hold(stream, milliseconds):
    with stream:
        SPIN((1,), (1,), (np.int64(milliseconds * CYCLES_PER_MS),))


def cross_stream_free(*, waited=False, reused=True, view=slice(None)):
    """Free an array of S, of which a kernel on T still reads a view."""
    result = cp.zeros(COUNT, cp.uint8)
    with S:
        array = cp.full(COUNT, 3, cp.uint8)
    settle()
    hold(T, 30)
    with T:
        cp.multiply(array[view], 2, out=result[view])
    if waited:
        S.wait_event(T.record())
    del array
    if reused:
        with S:
            cp.full(COUNT, 100, cp.uint8)
    settle()
    return bool((result[view] == 6).all())


def written_after_free():
    """Free an array of S that a kernel on T then writes; use its memory again afterwards."""
    with S:
        array = cp.full(COUNT, 3, cp.uint8)
    settle()
    hold(T, 30)
    with T:
        array.fill(7)
    del array
    settle()
    with S:
        cp.full(COUNT, 100, cp.uint8)
    settle()


def freed_after_copy():
    """Free an array of S that a copy on T still reads."""
    result = cp.zeros(COUNT, cp.uint8)
    with S:
        array = cp.full(COUNT, 3, cp.uint8)
    settle()
    hold(T, 30)
    result.data.copy_from_device_async(array.data, COUNT, T)
    del array
    with S:
        cp.full(COUNT, 100, cp.uint8)
    settle()
    return bool((result == 3).all())


def address_after_unrelated_work():
    """Return whether memory is reused after its last use on T, while T is busy with other work."""
    with S:
        array = cp.full(COUNT, 3, cp.uint8)
    settle()
    address = array.data.ptr
    with T:
        array += 1
    hold(T, 200)
    del array
    S.synchronize()
    hold(S, 20)  # the use is done, and the other work is not
    S.synchronize()
    with S:
        again = cp.empty(COUNT, cp.uint8)
    is_busy = not T.done
    settle()
    return is_busy and again.data.ptr == address
