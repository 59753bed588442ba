"""What findings predict, and what following them saves: ``python -m tests.gpu.measured_findings``.

Each program runs as written and as its finding proposes, first unrecorded for its time and peak,
then recorded for its findings. Prints a table; the exit code is 1 if an expected finding is not
among the first three, or stays when its advice was followed.
"""

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import cupy as cp
import numpy as np

import gpuviz
from gpuviz.advice.dominant import dominant
from gpuviz.advice.finding import Finding
from gpuviz.advice.joins import joins
from gpuviz.advice.memory_changes import device_blocks
from gpuviz.recording import Recording
from tests.gpu import array_programs

MIB = 1 << 20
ROUNDS = 5
FIRST = 3
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


def large_parts() -> None:
    array_programs.large_parts(cp)


def large_parts_improved() -> None:
    array_programs.large_parts_improved(cp)


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
    total, new = cp.zeros(1 << 24, cp.float32), cp.ones(1 << 24, cp.float32)
    for _ in range(50):
        total += new * np.float32(0.1)
    return total


_ACCUMULATE = cp.ElementwiseKernel("float32 t, float32 n", "float32 o", "o = t + n * 0.1f")


def accumulated_by_one_kernel() -> cp.ndarray:
    total, new = cp.zeros(1 << 24, cp.float32), cp.ones(1 << 24, cp.float32)
    for _ in range(50):
        _ACCUMULATE(total, new, total)
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


def noise_in_each_step() -> float:
    state = cp.ones(1 << 24, cp.float32)
    for _ in range(100):
        noise = cp.random.random(1 << 24, dtype=cp.float32)
        state += noise
    return float(state[0])


def same_work_for_a_benchmark() -> float:
    x = cp.ones(1 << 24, cp.float32)
    for _ in range(100):
        total = cp.exp(-x * x).sum()
    return float(total)


PROGRAMS = (
    Program("R18", scalars_in_a_loop, scalars_after_a_loop),
    Program("R18", items_of_small_arrays, items_after_a_loop),
    Program("", until_it_converges),
    Program("R54", masked_sums, sums_of_where),
    Program("R54", small_masks, small_wheres),
    Program("R46", large_parts, large_parts_improved),
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
    Program("", weights_that_change),
    Program("", noise_in_each_step),
    Program("", same_work_for_a_benchmark),
)


def measured(program: Callable[[], object]) -> tuple[float, int]:
    """Return the seconds and the bytes of the peak of a program that is not recorded."""
    program()
    seconds = []
    for _ in range(ROUNDS):
        cp.cuda.Device().synchronize()
        gpuviz.reset_peak_memory_stats()
        began = time.perf_counter()
        program()
        cp.cuda.Device().synchronize()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds), gpuviz.max_memory_allocated()


def recorded(program: Callable[[], object]) -> Recording:
    """Return the recording of a program whose kernels are compiled."""
    with gpuviz.record() as recorder:
        program()
        cp.cuda.Device().synchronize()
    return recorder.recording


def copies_of(recording: Recording) -> str:
    """Return what was recorded of copies that join arrays, for a program whose joins are missed."""
    lines = []
    for device in device_blocks(recording):
        found = joins(device)
        parts = [
            f"{int(device.requested[part]):,} of {int(device.requested[target]):,} B"
            for part, target in zip(found.part.tolist(), found.target.tolist(), strict=True)
        ]
        lines.append(f"    device {device.device}: {len(parts)} joined: {'; '.join(parts[:8])}")
        names = recording.kernels().to_pylist()[:8]
        lines += [f"    {row['count']} x {row['name']}" for row in names]
    touched = recording.table("launch_blocks").slice(0, 12).to_pylist()
    lines += [f"    {row}" for row in touched]
    return "\n".join(lines) or "    no memory or no uses were recorded"


def judged(program: Program) -> bool:
    """Print the row of a program; return whether its findings are right."""
    plain_s, plain_bytes = measured(program.plain)
    recording = recorded(program.plain)
    found = recording.findings()
    first = [each.rule for each in found[:FIRST]]
    texts = [f"{program.plain.__name__:24} {program.rule or '-':4} {1e3 * plain_s:8.2f}"]
    chosen = next((each for each in found[:FIRST] if each.rule == program.rule), None)
    if program.fixed is None:
        is_right = not {"R18", "R29", "R41", "R46", "R54", "R57"} & set(first)
        texts.append(f"ms, {first}")
    else:
        fixed_s, fixed_bytes = measured(program.fixed)
        rest = [each.rule for each in recorded(program.fixed).findings()]
        is_right = chosen is not None and program.rule not in rest
        texts.append(f"-> {1e3 * fixed_s:.2f} ms ({recording.duration_ns / 1e6:.2f} recorded),")
        texts.append(_row(chosen, plain_s - fixed_s, plain_bytes - fixed_bytes))
        texts.append(f"{first}, then {rest[:FIRST]}")
    show(" ".join([*texts, "" if is_right else " WRONG"]).rstrip())
    show(f"    {' '.join(each.text for each in dominant(recording))}")
    if not is_right:
        show("".join(f"    {each.rule}: {each.title}\n" for each in recording.findings(small=True)))
    if program.rule == "R46" and chosen is None:
        show(copies_of(recording))
    return is_right


def show(text: str) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _row(chosen: Finding | None, saved_s: float, saved_bytes: int) -> str:
    if chosen is None:
        return f"missed, saves {1e3 * saved_s:.2f} ms, {saved_bytes / MIB:.1f} MiB"
    return (
        f"predicted {chosen.saved_ns / 1e6:.2f} ms, {chosen.saved_bytes / MIB:.1f} MiB, measured "
        f"{1e3 * saved_s:.2f} ms, {saved_bytes / MIB:.1f} MiB"
    )


def main() -> int:
    """Judge all programs."""
    cp.cuda.set_allocator(gpuviz.malloc)
    results = [judged(each) for each in PROGRAMS]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
