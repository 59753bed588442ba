"""CuPy programs that compute or upload in each step what they could once."""

import cupy as cp
import numpy as np


def constants_in_each_step() -> float:
    host, x = np.arange(1 << 22, dtype=np.float32), cp.ones(1 << 22, cp.float32)
    for _ in range(40):
        x += cp.asarray(host)
    return float(x[0])


def constants_once() -> float:
    host, x = np.arange(1 << 22, dtype=np.float32), cp.ones(1 << 22, cp.float32)
    constants = cp.asarray(host)
    for _ in range(40):
        x += constants
    return float(x[0])


def other_batches() -> float:
    host, x = np.arange(1 << 22, dtype=np.float32), cp.ones(1 << 22, cp.float32)
    for _ in range(40):
        host += 1
        x += cp.asarray(host)
    return float(x[0])


def weights_in_each_step() -> float:
    distances, state = cp.linspace(0, 4, 1 << 24, dtype=cp.float32), cp.ones(1 << 24, cp.float32)
    for _ in range(100):
        weights = cp.exp(-distances * distances)
        state += weights
    return float(state[0])


def weights_once() -> float:
    distances, state = cp.linspace(0, 4, 1 << 24, dtype=cp.float32), cp.ones(1 << 24, cp.float32)
    weights = cp.exp(-distances * distances)
    for _ in range(100):
        state += weights
    return float(state[0])


def distances_in_each_step() -> float:
    x, y, state = cp.arange(4096.0), cp.arange(4096.0), cp.ones((4096, 4096))
    for _ in range(50):
        distances = cp.hypot(x[:, None], y)
        cp.minimum(state, distances, out=state)
    return float(state[0, 0])


def distances_once() -> float:
    x, y, state = cp.arange(4096.0), cp.arange(4096.0), cp.ones((4096, 4096))
    distances = cp.hypot(x[:, None], y)
    for _ in range(50):
        cp.minimum(state, distances, out=state)
    return float(state[0, 0])


def steps_of_other_strides() -> float:
    x, state = cp.arange(1 << 26, dtype=cp.float32), cp.zeros(1 << 23, cp.float32)
    for step in (1, 2, 3, 4, 5, 6, 7, 8):
        state += cp.exp(-x[::step][: 1 << 23])
    return float(state[0])


def weights_of_the_step() -> float:
    distances, state = cp.linspace(0, 4, 1 << 24, dtype=cp.float32), cp.ones(1 << 24, cp.float32)
    for step in range(100):
        weights = cp.exp(distances * np.float32(-step))
        state += weights
    return float(state[0])


def weights_that_change() -> float:
    distances, state = cp.linspace(0, 4, 1 << 24, dtype=cp.float32), cp.ones(1 << 24, cp.float32)
    for _ in range(100):
        weights = cp.exp(distances)
        weights *= state
        state += weights / weights
    return float(state[0])


def weights_changed_in_a_new_array() -> float:
    distances, state = cp.linspace(0, 4, 1 << 24, dtype=cp.float32), cp.ones(1 << 24, cp.float32)
    kept = cp.exp(distances)
    for _ in range(100):
        weights = kept * state
        state += weights / weights
    return float(state[0])


def noise_in_each_step() -> float:
    state = cp.ones(1 << 24, cp.float32)
    for _ in range(100):
        noise = cp.random.random(1 << 24, dtype=cp.float32)
        state += noise
    return float(state[0])


def noise_of_a_generator() -> float:
    rng, state = cp.random.default_rng(7), cp.ones(1 << 24, cp.float32)
    for _ in range(100):
        noise = rng.random(1 << 24, dtype=cp.float32)
        state += noise
    return float(state[0])


def same_work_for_a_benchmark() -> float:
    x = cp.ones(1 << 24, cp.float32)
    for _ in range(100):
        total = cp.exp(-x * x).sum()
    return float(total)


def spectrum_in_each_step() -> float:
    cp.fft.config.get_plan_cache().clear()
    kernel, x = cp.ones((2048, 2048), cp.float32), cp.ones((2048, 2048), cp.float32)
    for _ in range(200):
        spectrum = cp.fft.rfft2(kernel)
        x = cp.fft.irfft2(cp.fft.rfft2(x) * spectrum)
        x /= x.max()
    return float(x[0, 0])


def spectra_of_many_lengths() -> None:
    x = cp.random.random(1 << 16, dtype=cp.float32)
    for step in range(240):
        cp.fft.rfft(x[: 60_000 + 100 * (step % 24)])


def spectra_of_one_length() -> None:
    x = cp.random.random(1 << 16, dtype=cp.float32)
    for step in range(240):
        cp.fft.rfft(x[: 60_000 + 100 * (step % 24)], n=62_500)


def spectrum_once() -> float:
    cp.fft.config.get_plan_cache().clear()
    kernel, x = cp.ones((2048, 2048), cp.float32), cp.ones((2048, 2048), cp.float32)
    spectrum = cp.fft.rfft2(kernel)
    for _ in range(200):
        x = cp.fft.irfft2(cp.fft.rfft2(x) * spectrum)
        x /= x.max()
    return float(x[0, 0])


def kernel_scaled_in_each_step() -> None:
    x = cp.random.random(1 << 24, dtype=cp.float32)
    y = cp.zeros(1 << 24, cp.float32)
    for _ in range(30):
        weights = cp.exp(x)
        weights *= 0.5
        y += weights * y[:1]


def kernel_scaled_once() -> None:
    x = cp.random.random(1 << 24, dtype=cp.float32)
    y = cp.zeros(1 << 24, cp.float32)
    weights = cp.exp(x)
    weights *= 0.5
    for _ in range(30):
        y += weights * y[:1]


def kernel_scaled_further_in_each_step() -> None:
    x = cp.random.random(1 << 24, dtype=cp.float32)
    y = cp.zeros(1 << 24, cp.float32)
    weights = cp.exp(x)
    for _ in range(30):
        weights *= 0.5
        y += weights * y[:1]
