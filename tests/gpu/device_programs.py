"""What programs of several GPUs, and the tests of them, are made of."""

import ctypes
from typing import Any

_ELEMENTS = 1 << 20
# A kernel that runs for a number of ns on one multiprocessor, and writes one element.
SPIN = r"""
extern "C" __global__ void spin(float* out, long long duration) {
    long long begin, now;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(begin));
    do asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now)); while (now - begin < duration);
    out[0] += 1;
}
"""


def spin(array: Any, seconds: float) -> None:
    """Launch a kernel of a duration that writes an array, on the current stream."""
    import cupy

    kernel = cupy.RawKernel(SPIN, "spin")
    kernel((1,), (1,), (array, int(seconds * 1e9)))


def device_count() -> int:
    """Return the number of GPUs; 0 without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    driver.cuInit(0)
    driver.cuDeviceGetCount(ctypes.byref(count))
    return count.value


def hand_over(side: str, *, is_ordered: bool) -> int:
    """Fill on GPU 0, copy to GPU 1, add there; return how many elements are wrong."""
    import cupy

    with cupy.cuda.Device(0):
        compute, source = cupy.cuda.Stream(non_blocking=True), cupy.zeros(_ELEMENTS, "f")
        cupy.cuda.Device().synchronize()
    with cupy.cuda.Device(1):
        copies, after = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))
        target, result = cupy.zeros(_ELEMENTS, "f"), cupy.zeros(_ELEMENTS, "f")
        cupy.cuda.Device().synchronize()
    with cupy.cuda.Device(0), compute:
        spin(source, 0.05)
        source.fill(5)
        filled = compute.record()
    with cupy.cuda.Device(1), copies:
        if is_ordered or side == "behind":
            copies.wait_event(filled)
        cupy.cuda.runtime.memcpyPeerAsync(
            target.data.ptr, 1, source.data.ptr, 0, source.nbytes, copies.ptr
        )
        copied = copies.record()
    with cupy.cuda.Device(1), after:
        if is_ordered or side == "before":
            after.wait_event(copied)
        cupy.add(target, 1, out=result)
        after.synchronize()
    for device in (0, 1):
        cupy.cuda.Device(device).synchronize()
    with cupy.cuda.Device(1):
        return int((result != 6).sum())
