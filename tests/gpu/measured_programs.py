"""CuPy programs, each with what follows a finding's advice, or with nothing to follow."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from itertools import count

import cupy as cp
import cupyx
import numpy as np

import gpuviz
from tests.gpu import array_programs
from tests.gpu.test_findings_about_time import (
    uses_the_default_stream,
    waits_for_needless_events,
    waits_needlessly,
)

FLOATS = 1 << 22


@dataclass(frozen=True)
class Program:
    """A program, what follows the advice of a finding about it, and the rule of that finding.

    A program without a rule looks like one that has it, and has nothing to change.
    """

    rule: str
    plain: Callable[[], object]
    fixed: Callable[[], object] | None = None


def scalars_in_a_loop() -> float:
    x, total = cp.ones(FLOATS, cp.float32), 0.0
    for _ in range(300):
        x *= np.float32(1.0001)
        total += float(x.sum())
    return total


def scalars_after_a_loop() -> float:
    # With `out=` CuPy's reductions by CUB copy their result by a further kernel.
    x, sums = cp.ones(FLOATS, cp.float32), []
    for _ in range(300):
        x *= np.float32(1.0001)
        sums.append(x.sum())
    return float(cp.stack(sums).get().sum())


def items_of_small_arrays() -> float:
    x, total = cp.ones(1 << 12, cp.float32), 0.0
    for _ in range(500):
        x = cp.sqrt(x + 1)
        total += x[0].item()
    return total


def items_after_a_loop() -> float:
    x, kept = cp.ones(1 << 12, cp.float32), []
    for _ in range(500):
        x = cp.sqrt(x + 1)
        kept.append(x[0])
    return float(cp.stack(kept).get().sum())


def until_it_converges() -> float:
    x, error = cp.ones(FLOATS, cp.float32), 1.0
    while error > 1e-3:
        x *= np.float32(0.98)
        error = float(x.max())
    return error


def masked_sums() -> cp.ndarray:
    x, total = cp.linspace(-1, 1, 1 << 24, dtype=cp.float32), cp.zeros((), cp.float32)
    for step in range(40):
        total += x[x > step / 40].sum()
    return total


def sums_of_where() -> cp.ndarray:
    x, total = cp.linspace(-1, 1, 1 << 24, dtype=cp.float32), cp.zeros((), cp.float32)
    for step in range(40):
        total += cp.where(x > step / 40, x, 0).sum()
    return total


def small_masks() -> cp.ndarray:
    x, total = cp.linspace(-1, 1, 1 << 14, dtype=cp.float32), cp.zeros((), cp.float32)
    for step in range(300):
        total += x[x > step / 300].sum()
    return total


def small_wheres() -> cp.ndarray:
    x, total = cp.linspace(-1, 1, 1 << 14, dtype=cp.float32), cp.zeros((), cp.float32)
    for step in range(300):
        total += cp.where(x > step / 300, x, 0).sum()
    return total


def many_parts() -> cp.ndarray:
    parts = [cp.full(1 << 22, step, cp.float32) for step in range(24)]
    whole = cp.concatenate(parts)
    del parts
    whole += 1
    return whole


def many_slices() -> cp.ndarray:
    whole = cp.empty(24 << 22, cp.float32)
    for step in range(24):
        whole[step << 22 : (step + 1) << 22] = step
    whole += 1
    return whole


def small_parts() -> cp.ndarray:
    parts = [cp.full(1 << 18, step, cp.float32) for step in range(64)]
    whole = cp.concatenate(parts)
    del parts
    whole += 1
    return whole


def small_slices() -> cp.ndarray:
    whole = cp.empty(64 << 18, cp.float32)
    for step in range(64):
        whole[step << 18 : (step + 1) << 18] = step
    whole += 1
    return whole


def parts_that_live_on() -> cp.ndarray:
    parts = [cp.full(1 << 25, step, cp.float32) for step in range(2)]
    whole = cp.concatenate(parts)
    parts[0] += 1
    parts[1] += 1
    return whole[:1] + parts[0][:1]


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


def uploads_of_pageable_memory() -> None:
    host, x, y = np.zeros(FLOATS, np.float32), cp.empty(FLOATS, cp.float32), cp.zeros(FLOATS)
    for step in range(40):
        host[0] = step
        x.set(host)
        y += x


def uploads_of_pinned_memory() -> None:
    host, x = cupyx.zeros_pinned(FLOATS, np.float32), cp.empty(FLOATS, cp.float32)
    y = cp.zeros(FLOATS)
    for step in range(40):
        host[0] = step
        x.set(host)
        y += x


@cache
def _batches() -> list[np.ndarray]:
    return [cupyx.zeros_pinned(FLOATS, np.float32) for _ in range(24)]


def copies_in_line() -> None:
    x, y = cp.empty(FLOATS, cp.float32), cp.zeros(FLOATS, cp.float32)
    stream = cp.cuda.Stream()
    with stream:
        for step, host in enumerate(_batches()):
            host[0] = step
            x.set(host, stream=stream)
            for _ in range(12):
                cp.add(y, x, out=y)
    stream.synchronize()


def copies_beside_kernels() -> None:
    buffers, y = [cp.empty(FLOATS, cp.float32) for _ in "ab"], cp.zeros(FLOATS, cp.float32)
    copying, computing = cp.cuda.Stream(), cp.cuda.Stream()
    free = [computing.record() for _ in "ab"]
    for step, host in enumerate(_batches()):
        host[0] = step
        x = buffers[step % 2]
        copying.wait_event(free[step % 2])
        x.set(host, stream=copying)
        computing.wait_event(copying.record())
        with computing:
            for _ in range(12):
                cp.add(y, x, out=y)
        free[step % 2] = computing.record()
    computing.synchronize()


def small_launches() -> None:
    x, y = cp.ones(1 << 12, cp.float32), cp.ones(1 << 12, cp.float32)
    for _ in range(1000):
        _small_step(x, y)


def small_launches_as_a_graph() -> None:
    x, y = cp.ones(1 << 12, cp.float32), cp.ones(1 << 12, cp.float32)
    with cp.cuda.Stream() as stream:
        stream.begin_capture()
        for _ in range(20):
            _small_step(x, y)
        graph = stream.end_capture()
        for _ in range(50):
            graph.launch(stream)
        stream.synchronize()


def _small_step(x: cp.ndarray, y: cp.ndarray) -> None:
    cp.add(x, y, out=y)
    cp.sqrt(y, out=y)
    cp.multiply(x, y, out=x)
    cp.minimum(x, y, out=x)


def elements_one_by_one() -> list[float]:
    x = cp.arange(1000, dtype=cp.float32)
    return [float(each) for each in x]


def elements_at_once() -> list[float]:
    x = cp.arange(1000, dtype=cp.float32)
    return x.tolist()


def sorted_on_the_host() -> None:
    values, x = np.random.default_rng(7).random(1 << 17), cp.ones(FLOATS, cp.float32)
    for step in range(30):
        values[step] = step
        x *= np.float32(np.sort(values)[step])


def sorted_on_the_gpu() -> None:
    values, x = cp.asarray(np.random.default_rng(7).random(1 << 17)), cp.ones(FLOATS, cp.float32)
    for step in range(30):
        values[step] = step
        x *= cp.sort(values)[step]


_versions = count()


def compiled_for_each_value() -> None:
    x, run = cp.ones(1 << 12, cp.float32), next(_versions)
    for step in range(12):
        source = f'extern "C" __global__ void scale(float* x) {{ x[0] *= {run}{step:03}.5f; }}'
        cp.RawKernel(source, "scale")((1,), (1,), (x,))


_SCALE = cp.RawKernel('extern "C" __global__ void scale(float* x, float f) { x[0] *= f; }', "scale")


def compiled_once() -> None:
    x, run = cp.ones(1 << 12, cp.float32), next(_versions)
    for step in range(12):
        _SCALE((1,), (1,), (x, np.float32(1000 * run + step + 0.5)))


def cache_released_in_each_step() -> None:
    x = cp.ones(1 << 24, cp.float32)
    for _ in range(40):
        y = x * 2
        z = y + x
        del y, z
        gpuviz.empty_cache()


def cache_kept() -> None:
    x = cp.ones(1 << 24, cp.float32)
    for _ in range(40):
        y = x * 2
        z = y + x
        del y, z


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


def source_at_the_peak(*, deleted: bool = False) -> None:
    raw = cp.ones(1 << 26, cp.float32)
    roots = cp.sqrt(raw)
    if deleted:
        del raw
    table = cp.concatenate([roots[:1], cp.ones(1 << 27, cp.float32)])
    table *= roots[0]


def result_before_its_use(*, late: bool = False) -> None:
    if not late:
        result = cp.empty(1 << 26, cp.float32)
    x = cp.ones(1 << 26, cp.float32)
    highest = cp.sort(x)[-1]
    del x
    if late:
        result = cp.empty(1 << 26, cp.float32)
    result[:] = highest


def new_array_for_a_result(*, in_place: bool = False) -> None:
    # No kernel of the expression could also do what is before and after it.
    x = cp.random.random(1 << 27, dtype=cp.float32)
    x = cp.exp(x, out=x) if in_place else cp.exp(x)
    cp.take(x, cp.arange(16))


def outputs_joined_in_each_round() -> None:
    outputs = []
    for step in range(40):
        outputs.append(cp.full(1 << 20, step, cp.float32))
        mean = cp.stack(outputs).mean(axis=0)
        del mean


def outputs_in_one_array() -> None:
    outputs = cp.empty((40, 1 << 20), cp.float32)
    for step in range(40):
        outputs[step] = cp.full(1 << 20, step, cp.float32)
        mean = outputs[: step + 1].mean(axis=0)
        del mean


def history_of_arrays() -> None:
    x, history = cp.ones(1 << 22, cp.float32), []
    for _ in range(40):
        x = cp.sqrt(x + 1)
        history.append(x)


def history_of_means() -> None:
    x, history = cp.ones(1 << 22, cp.float32), []
    for _ in range(40):
        x = cp.sqrt(x + 1)
        history.append(x.mean())


def paths_that_wait_for_their_mean() -> None:
    paths = []
    for _ in range(24):
        steps = cp.random.standard_normal((256, 1 << 14), dtype=cp.float32)
        paths.append(cp.cumsum(steps, axis=0))
        del steps
    means = [path.mean(axis=0) for path in paths]
    del means


def means_of_paths() -> None:
    means = []
    for _ in range(24):
        steps = cp.random.standard_normal((256, 1 << 14), dtype=cp.float32)
        path = cp.cumsum(steps, axis=0)
        means.append(path.mean(axis=0))
        del steps, path


def paths_that_are_used_again() -> None:
    paths = []
    for _ in range(24):
        steps = cp.random.standard_normal((256, 1 << 14), dtype=cp.float32)
        paths.append(cp.cumsum(steps, axis=0))
        del steps
    whole = sum(path.mean() for path in paths)
    means = [(path - whole / 24).std(axis=0) for path in paths]
    del means


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


def _of_arrays(rule: str, name: str) -> Program:
    plain, fixed = (getattr(array_programs, each) for each in (name, f"{name}_improved"))
    return Program(rule, partial(plain, cp), partial(fixed, cp))


PROGRAMS = (
    Program("R18", scalars_in_a_loop, scalars_after_a_loop),
    Program("R18", items_of_small_arrays, items_after_a_loop),
    Program("", until_it_converges),
    Program("R54", masked_sums, sums_of_where),
    Program("R54", small_masks, small_wheres),
    _of_arrays("R46", "large_parts"),
    Program("R46", many_parts, many_slices),
    Program("R46", small_parts, small_slices),
    Program("", parts_that_live_on),
    Program("R29", constants_in_each_step, constants_once),
    Program("", other_batches),
    Program("R08", updated_on_one_line, updated_by_one_kernel),
    Program("R08", accumulated, accumulated_by_one_kernel),
    Program("", scaled_in_place),
    Program("R08", summed_over_frequencies, summed_by_one_kernel),
    Program("", summed_over_arrays),
    Program("R57", weights_in_each_step, weights_once),
    Program("R57", distances_in_each_step, distances_once),
    Program("", steps_of_other_strides),
    Program("", weights_of_the_step),
    Program("R57", weights_that_change, weights_changed_in_a_new_array),
    Program("R42", noise_in_each_step, noise_of_a_generator),
    Program("", same_work_for_a_benchmark),
    _of_arrays("R01", "zeros_that_nothing_reads"),
    Program("R02", result_before_its_use, partial(result_before_its_use, late=True)),
    _of_arrays("R05", "idle_array"),
    Program("R07", new_array_for_a_result, partial(new_array_for_a_result, in_place=True)),
    _of_arrays("R08", "temporaries"),
    _of_arrays("R08", "distances"),
    Program("R09", history_of_arrays, history_of_means),
    Program("R10", cache_released_in_each_step, cache_kept),
    Program("R17", uploads_of_pageable_memory, uploads_of_pinned_memory),
    Program("R21", elements_one_by_one, elements_at_once),
    Program("R22", waits_needlessly, partial(waits_needlessly, waits=False)),
    Program("R23", uses_the_default_stream, partial(uses_the_default_stream, default=False)),
    Program("R24", waits_for_needless_events, partial(waits_for_needless_events, waits=False)),
    Program("R25", copies_in_line, copies_beside_kernels),
    Program("R27", small_launches, small_launches_as_a_graph),
    _of_arrays("R31", "zeros_that_are_overwritten"),
    _of_arrays("R33", "wide_weights"),
    _of_arrays("R34", "copied_coordinates"),
    Program("R43", sorted_on_the_host, sorted_on_the_gpu),
    Program("R45", source_at_the_peak, partial(source_at_the_peak, deleted=True)),
    Program("R47", compiled_for_each_value, compiled_once),
    _of_arrays("R49", "joined_in_a_loop"),
    Program("R49", outputs_joined_in_each_round, outputs_in_one_array),
    Program("R57", spectrum_in_each_step, spectrum_once),
    Program("R64", spectra_of_many_lengths, spectra_of_one_length),
    Program("R57", kernel_scaled_in_each_step, kernel_scaled_once),
    Program("", kernel_scaled_further_in_each_step),
    Program("R63", paths_that_wait_for_their_mean, means_of_paths),
    Program("", paths_that_are_used_again),
)
