"""R27: the GPU is idle between short kernels because each launch takes longer than the kernel."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.training_blocks import OPTIMIZER
from gpuviz.advice.evidence import Evidence
from gpuviz.advice.finding import Finding
from gpuviz.advice.host.eager_operations import eager_operations
from gpuviz.advice.host.host_gaps import host_gaps, launching_idle, longest_late
from gpuviz.advice.host_lines import line_numbers, longest_lines, text_of
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import KERNEL
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.libraries import by_library
from gpuviz.advice.source.optimizers import optimizer_step
from gpuviz.advice.training.anomaly_tests import anomaly_tests
from gpuviz.analysis.launches import phases_of, stacks_of
from gpuviz.analysis.overlap import DeviceOverlap, whole_overlap
from gpuviz.analysis.steady_state import SteadyState, steady_states
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_count, format_duration, format_share

RULES = (
    Rule(
        "R27",
        "a GPU that waits for launches",
        "at least 100 kernels with a median below 10 µs; the GPU is busy for less than half of the "
        "time, and idle for 10 % of it, and a quarter of the idle time, during launches other than "
        "copies and gaps below 250 µs before them; with JAX, kernels of any duration, if each "
        "iteration of a loop runs at least five operations outside of `jax.jit`, and the GPU is "
        "idle for as long during their launches",
        "fuse operations, CUDA graphs, one function under `jax.jit`",
    ),
)


# Of the steady state.
_LEAST_SHARE = 0.1
# A launch costs 5 to 30 µs on the host; longer kernels hide it.
_LONGEST_MEDIAN_NS = 10_000
# A GPU that is busy most of the time is not waiting for launches, but for the end of its work.
_MOST_BUSY = 0.5
# Of the idle time; with less, something else keeps the GPU waiting.
_LEAST_OF_IDLE = 0.25
# Of the launches, those of an optimizer that has a fused form.
_LEAST_OF_OPTIMIZER = 0.05
# Fewer launches are not worth a graph.
_LEAST_LAUNCHES = 100
_WHOLE = "one call for whole arrays instead of a loop over their parts"
_LESS_OFTEN_WITH_CUPY = (
    f"{_WHOLE}, fused elementwise operations (cupy.fuse, ElementwiseKernel), or a CUDA graph of "
    "repeated launches"
)
_FUSED = "an optimizer with `fused=True`, "
_LESS_OFTEN = {
    "torch": f"{_WHOLE}, larger batches, `torch.compile`, which fuses operations, "
    f'{_FUSED}or a CUDA graph of a step (`torch.compile(mode="reduce-overhead")`)',
    "numba": f"{_WHOLE}, or one kernel for what several do",
    "jax": f"{_WHOLE}, and one function under `jax.jit` for all of a step, or for all steps with "
    "`jax.lax.scan`",
}
_JIT = (
    "Put the operations of an iteration into one function under `jax.jit`: XLA fuses them, and the "
    "host starts one executable; with `jax.lax.fori_loop` or `jax.lax.scan`, one for all "
    "iterations. The saving is that of launches that take no time on the host; what fused "
    "operations do not read and write comes on top."
)


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find devices that wait for the host's next launch most of the time.

    Trigger: at least 100 kernels with a median below 10 µs, the device is busy for less than
    half of its steady state, and idle with the cause ``host`` for at least 10 % of it, and a
    quarter of the idle time, during calls that launch anything but copies and in gaps below 250 µs
    before these. Longer gaps contain other
    work (R43), and gaps before the first launch of a kernel its compilation. With JAX, operations
    outside of `jax.jit` are executables of their own, whatever their kernels take: those of a loop
    are a finding if the device is idle for as long in their calls and the gaps before them. Where
    autograd's anomaly detection makes all operations of PyTorch slower, nothing is said (R70).

    Saving: the recording's `Schedule`, replayed without these gaps and as if the calls took no
    time, and at most the idle time of the steady state. It bounds what CUDA graphs or fewer, larger
    kernels can save, and comes after the findings that name a cause: ``possible``.
    """
    recording = schedule.recording
    if not recording.tables["api_calls"].num_rows or anomaly_tests(schedule):
        return
    calls = recording.tables["api_calls"]
    for device, steady in zip(
        whole_overlap(recording).devices, steady_states(recording), strict=True
    ):
        of_device = schedule.device == device.device
        work = np.flatnonzero(of_device & (schedule.kind == KERNEL))
        kernels = schedule.duration[work]
        gaps = host_gaps(recording, device.device)
        chosen, idle = launching_idle(recording, device.device, steady.from_ns)
        one_by_one = _one_by_one(schedule, device, steady)
        if one_by_one is not None:
            yield one_by_one
            continue
        if (
            len(kernels) < _LEAST_LAUNCHES
            or steady.busy > _MOST_BUSY
            or np.median(kernels) >= _LONGEST_MEDIAN_NS
            or not _is_long(int(idle.sum()), steady)
        ):
            continue
        change = ScheduleChange(without_gap=chosen, instant=chosen, at_most_ns=steady.idle_ns)
        lines = longest_lines(recording, plain(calls["stack"])[idle > 0], idle[idle > 0])
        made = _launches_of(schedule, work, lines[0].stack)
        yield Finding(
            rule="R27",
            title=(
                f"The GPU is busy for {format_share(steady.busy)} of the time and waits for "
                f"launches: {text_of(lines[0])} makes {format_count(made)} of "
                f"{format_count(len(kernels))}."
            ),
            reason=(
                f"The kernels have a median of {format_duration(int(np.median(kernels)))} on the "
                f"GPU. The host needs {format_duration(int(np.median(gaps.length[chosen])))} "
                f"(median) between two launches; the GPU is idle for "
                f"{format_duration(int(idle.sum()))} during launches and such short gaps, and for "
                f"{format_duration(steady.idle_ns)} in all."
            ),
            change=(
                f"Launch less often: {_less_often(recording, schedule.call[work])}. "
                "The saving is that of launches that take no time on the host."
            ),
            certainty="possible",
            device=device.device,
            saved_ns=schedule.saved_alone(change),
            schedule=change,
            lines=lines,
            evidence=Evidence(
                "idle_gaps", longest_late(recording, device.device), (device.start, device.end)
            ),
        )


def _is_long(idle_ns: int, steady: SteadyState) -> bool:
    """Return whether idle time is a relevant part of the steady state, and of its idle time."""
    is_of_idle = idle_ns >= _LEAST_OF_IDLE * steady.idle_ns
    return is_of_idle and idle_ns >= _LEAST_SHARE * steady.duration_ns


def _one_by_one(schedule: Schedule, device: DeviceOverlap, steady: SteadyState) -> Finding | None:
    """Return the finding about operations of JAX that a loop runs outside of `jax.jit`."""
    recording = schedule.recording
    eager = eager_operations(recording, steady.from_ns)
    if eager is None:
        return None
    chosen, idle = launching_idle(recording, device.device, steady.from_ns)
    gaps = host_gaps(recording, device.device)
    copies = eager.copies & gaps.is_in_cell & ~gaps.is_first
    launches = chosen & eager.calls
    chosen = launches | copies
    idle = np.where(eager.calls, idle, 0) + np.where(copies, gaps.idle + gaps.idle_in_call, 0)
    between = np.diff(np.sort(schedule.called[launches]))
    if not len(between) or not _is_long(int(idle.sum()), steady):
        return None
    change = ScheduleChange(without_gap=chosen, instant=chosen, at_most_ns=steady.idle_ns)
    return Finding(
        rule="R27",
        title=(
            f"{eager.place} runs {format_count(eager.in_iteration)} operations outside of "
            "`jax.jit` in each iteration; the GPU is busy for "
            f"{format_share(steady.busy)} of the time and waits for their launches."
        ),
        reason=(
            f"In about {format_count(eager.iterations)} iterations, XLA runs each operation as an "
            "executable of its own, which reads its arguments from memory and writes its result "
            f"there. The host needs {format_duration(int(np.median(between)))} (median) from one "
            f"launch to the next; the GPU is idle for {format_duration(int(idle.sum()))} "
            f"meanwhile, and for {format_duration(steady.idle_ns)} in all."
        ),
        change=_JIT,
        certainty="possible",
        device=device.device,
        saved_ns=schedule.saved_alone(change),
        schedule=change,
        lines=longest_lines(recording, eager.stacks[idle > 0], idle[idle > 0]),
        evidence=Evidence(
            "idle_gaps", longest_late(recording, device.device), (device.start, device.end)
        ),
    )


def _less_often(recording: RecordingData, calls: np.ndarray) -> str:
    """Return how to launch less often than some calls do."""
    text = by_library(recording, _LESS_OFTEN, _LESS_OFTEN_WITH_CUPY)
    stacks = stacks_of(recording.tables, calls)
    stepping, counts = np.unique(
        stacks[phases_of(recording.tables, stacks) == OPTIMIZER], return_counts=True
    )
    steps = [optimizer_step(recording, stack) for stack in stepping.tolist()]
    can = [each.has_fused and (each.is_at_once or each.is_in_turn) for each in steps]
    is_much = counts[can].sum() >= _LEAST_OF_OPTIMIZER * len(calls)
    return text if is_much else text.replace(_FUSED, "")


def _launches_of(schedule: Schedule, work: np.ndarray, stack: int) -> int:
    """Return how many activities the line of a call stack launches."""
    stacks = stacks_of(schedule.recording.tables, schedule.call[work])
    numbers = line_numbers(schedule.recording, np.append(stack, stacks))
    return int(np.count_nonzero(numbers[1:] == numbers[0]))
