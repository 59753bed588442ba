"""CuPy programs whose kernels for each element could be one."""

import cupy as cp
import numpy as np


def updated_on_one_line() -> cp.ndarray:
    average, new = cp.ones(1 << 24, cp.float32), cp.ones(1 << 24, cp.float32)
    for _ in range(50):
        new += 1
        average = average * np.float32(0.9) + new * np.float32(0.1)
    return average


_UPDATE = cp.ElementwiseKernel("float32 a, float32 n", "float32 o", "o = a * 0.9f + n * 0.1f")


def updated_by_one_kernel() -> cp.ndarray:
    average, new = cp.ones(1 << 24, cp.float32), cp.ones(1 << 24, cp.float32)
    for _ in range(50):
        new += 1
        average = _UPDATE(average, new)
    return average


def accumulated() -> cp.ndarray:
    total, parts = cp.zeros(1 << 24, cp.float32), [cp.ones(1 << 24, cp.float32) for _ in range(8)]
    for step in range(50):
        total += parts[step % 8] * np.float32(0.1)
    return total


_ACCUMULATE = cp.ElementwiseKernel("float32 t, float32 n", "float32 o", "o = t + n * 0.1f")


def accumulated_by_one_kernel() -> cp.ndarray:
    total, parts = cp.zeros(1 << 24, cp.float32), [cp.ones(1 << 24, cp.float32) for _ in range(8)]
    for step in range(50):
        _ACCUMULATE(total, parts[step % 8], total)
    return total


def scaled_in_place() -> None:
    x = cp.ones(1 << 28, cp.float32)
    for _ in range(50):
        x *= np.float32(1.0001)


def summed_over_frequencies() -> cp.ndarray:
    time_s, total = cp.linspace(0, 1, 1 << 24, dtype=cp.float32), cp.zeros(1 << 24, cp.float32)
    for frequency in range(1, 33):
        total += cp.sin(time_s * np.float32(frequency))
    return total


_SINES = cp.ElementwiseKernel(
    "float32 t, int32 most", "float32 total", "for (int f = 1; f <= most; ++f) total += sin(t * f)"
)


def summed_by_one_kernel() -> cp.ndarray:
    time_s, total = cp.linspace(0, 1, 1 << 24, dtype=cp.float32), cp.zeros(1 << 24, cp.float32)
    _SINES(time_s, 32, total)
    return total


def summed_over_arrays() -> cp.ndarray:
    arrays, total = [cp.ones(1 << 24, cp.float32) for _ in range(8)], cp.zeros(1 << 24, cp.float32)
    for array in arrays:
        total += array
    return total
