"""R42: a kernel whose grid leaves most of the GPU's multiprocessors idle."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from gpuviz.advice.arrays.training_blocks import BACKWARD
from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import line_numbers, line_of, text_of
from gpuviz.advice.kernels.independent_launches import are_independent
from gpuviz.advice.kernels.narrow_blocks import WARP, NarrowBlocks, narrow_blocks
from gpuviz.advice.kernels.occupancy import Occupancy
from gpuviz.advice.kernels.random_numbers import RANDOM_ADVICE, of_generator
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import KERNEL
from gpuviz.advice.rule import Rule
from gpuviz.advice.rules.r22_needless_synchronization import begins_without_waits
from gpuviz.advice.waits.needless_orders import begins_without
from gpuviz.analysis.collective_kernels import NCCL
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.kernels import short_name
from gpuviz.analysis.launches import phases_of, stacks_of, text_numbers
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.quantities import format_count, format_counted, format_duration, format_share

RULES = (
    Rule(
        "R42",
        "a kernel on few multiprocessors, or in blocks of less than a warp",
        "its blocks, with those of its launches that run at the same time, are at most half as "
        "many as the GPU's multiprocessors (one block if their number is unknown), it takes at "
        "least 10 µs, 5 % of the busy time, and half of the time of the kernels that its call "
        "stacks launch, it is not of a backward pass or a layer of PyTorch, and no other kernel "
        "runs, nor would without the needless orders and waits of R22, R23 and R24; or the program "
        "launches it in many blocks of fewer than 32 threads",
        "another layout or function; `cupy.random.default_rng()` for random numbers; larger blocks",
    ),
)

# Half of the multiprocessors are idle at least.
_LARGEST_FILL = 0.5
# Of the time in which the GPU works; less is not worth another algorithm.
_LEAST_SHARE = 0.05
# A shorter kernel has no work to spread: an empty one takes about 2 µs on an H100.
_SHORTEST_NS = 10_000
_EMPTY_NS = 2_000
# Of the time in which the launches run. Kernels of other streams use the idle multiprocessors if
# they run most of the time.
_LEAST_UNFILLED = 0.5
# Of the time of the kernels that a call launches; the others of a library's routine only help it.
_LEAST_OF_CALLS = 0.5
_MOST_KERNELS = 8
_LAYERS = "/torch/nn/"
# Kernels that mostly wait: all-reductions of vLLM and PyTorch, NVSHMEM, and `torch.cuda._sleep`.
_WAITS = re.compile(
    r"\bcross_device_reduce|\b(one|two)_shot_all_reduce|\bmultimem_\w+|nvshmem|\bspin_kernel\b"
)
# cuRAND's generator for the host, which draws each sequence in a thread of its own.
_SEQUENCES, _OF_CUPY = "gen_sequenced", "/cupy/random/"


@dataclass(frozen=True, eq=False, slots=True)
class _Kernels:
    """Launches of one kernel by one line: their activities, blocks, and what they leave idle."""

    work: np.ndarray
    blocks: np.ndarray
    occupancy: Occupancy
    multiprocessors: int


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find kernels with fewer blocks than half of the GPU's multiprocessors.

    Trigger: one kernel of one line, in launches of at least 10 µs with so few blocks, takes at
    least 5 % of the time in which the device works. Most of this time no other kernel runs, and
    those of these launches that run at the same time have so few blocks together. A block runs on
    one multiprocessor, so the others are idle. If the number of multiprocessors is unknown, only a
    single block counts. Kernels that take less than half of the time of all kernels of their call
    stacks do not count: they mostly prepare the work of a library's routine. Nor do kernels that
    take few blocks on purpose and mostly wait, as NCCL's do for other GPUs. Nor do those of
    backward passes and of PyTorch's layers, which PyTorch chooses, nor kernels that run alone only
    because of orders of the default stream or of events that nothing needs, which are R23 and R24,
    or of synchronizations, which are R22.
    Kernels in blocks of less than a warp are found by
    `gpuviz.advice.kernels.narrow_blocks.narrow_blocks`.

    Saving: the recording's `Schedule`, replayed with the durations that these launches would have
    if they filled the GPU at every moment, at least 2 µs each: duration * blocks / multiprocessors
    for one that runs alone. If the number is unknown, the durations are 2 µs. More blocks may have
    to share memory bandwidth, so that it is ``possible``. cuRAND's generator, which CuPy's
    `RandomState` uses, gives way to `cupy.random.Generator`, whose kernels write at half of the
    device's bandwidth.
    """
    recording = schedule.recording
    for device in recording.devices:
        for kernels in _candidates(recording, schedule, device):
            yield _finding(recording, schedule, kernels, device)
        least_ns = _LEAST_SHARE * _busy_ns(schedule, device)
        for narrow in narrow_blocks(schedule, device, least_ns):
            yield _of_narrow_blocks(schedule, narrow, device)


def _busy_ns(schedule: Schedule, device: int) -> int:
    """Return how long a device works, in ns."""
    of_device = schedule.device == device
    return Intervals(schedule.begin[of_device], schedule.end[of_device]).length


def _candidates(recording: RecordingData, schedule: Schedule, device: int) -> Iterator[_Kernels]:
    of_device = schedule.device == device
    kernels = np.flatnonzero(of_device & (schedule.kind == KERNEL))
    busy_ns = _busy_ns(schedule, device)
    blocks = schedule.blocks
    multiprocessors = schedule.multiprocessors.get(device, 0)
    most = max(1, int(_LARGEST_FILL * multiprocessors))
    few = (blocks[kernels] > 0) & (blocks[kernels] <= most)
    chosen = kernels[few & (schedule.duration[kernels] >= _SHORTEST_NS)]
    names = plain(recording.tables["activities"]["name"])[schedule.rows[chosen]]
    is_own = ~np.isin(names, _waiting(recording, names))
    chosen, names = chosen[is_own], names[is_own]
    if not chosen.size:
        return
    stacks = stacks_of(recording.tables, schedule.call)
    of_torch = phases_of(recording.tables, stacks[chosen]) == BACKWARD
    of_torch |= _of_layers(recording, stacks[chosen])
    chosen, names = chosen[~of_torch], names[~of_torch]
    lines = line_numbers(recording, stacks[chosen])
    keys = lines * len(chosen) + text_numbers(recording.tables, names)
    _, numbers = np.unique(keys, return_inverse=True)
    totals = np.bincount(numbers, weights=schedule.duration[chosen])
    begins = [*begins_without(schedule, device), *begins_without_waits(schedule)]
    for group in np.argsort(-totals, kind="stable")[:_MOST_KERNELS]:
        if totals[group] < _LEAST_SHARE * busy_ns:
            return
        work = chosen[numbers == group]
        if not _is_main(schedule, stacks, kernels, work):
            continue
        others = kernels[~np.isin(kernels, work)]
        found = [
            Occupancy(
                begin[work],
                begin[work] + schedule.duration[work],
                blocks[work],
                multiprocessors,
                Intervals(begin[others], begin[others] + schedule.duration[others]),
            )
            for begin in begins
        ]
        is_long = found[0].union_ns >= _LEAST_SHARE * busy_ns
        if is_long and all(
            each.filled_at_most_ns(_LARGEST_FILL) >= _LEAST_UNFILLED * each.union_ns
            for each in found
        ):
            yield _Kernels(work, blocks[work], found[0], multiprocessors)


def _of_layers(recording: RecordingData, stacks: np.ndarray) -> np.ndarray:
    """Return whether the line of each call stack calls a layer of PyTorch that does the work."""
    distinct, place = np.unique(stacks, return_inverse=True)
    found = []
    for stack in distinct.tolist():
        inside = takewhile(lambda frame: frame.is_installed, recording.call_stacks.frames(stack))
        found.append(any(_LAYERS in frame.filename for frame in inside))
    of_layers: np.ndarray = np.array(found, bool)[place.ravel()]
    return of_layers


def _is_main(schedule: Schedule, stacks: np.ndarray, kernels: np.ndarray, work: np.ndarray) -> bool:
    """Return whether kernels take most of the time of all those that their calls launched."""
    known = stacks[work][stacks[work] != 0]
    together = kernels[np.isin(stacks[kernels], known)]
    least = _LEAST_OF_CALLS * schedule.duration[together].sum()
    return bool(schedule.duration[work].sum() >= least)


def _waiting(recording: RecordingData, names: np.ndarray) -> np.ndarray:
    """Return those ids of ``strings`` that are names of kernels that mostly wait."""
    distinct = np.unique(names)
    known = texts(recording.tables, distinct)
    found = [text.startswith(NCCL) or _WAITS.search(text) is not None for text in known]
    waiting: np.ndarray = distinct[found]
    return waiting


def _finding(
    recording: RecordingData, schedule: Schedule, kernels: _Kernels, device: int
) -> Finding:
    work = kernels.work
    total_ns, busy_ns = kernels.occupancy.union_ns, _busy_ns(schedule, device)
    shorter = schedule.duration.copy()
    shorter[work] = np.maximum(schedule.duration[work] - kernels.occupancy.idle_ns, _EMPTY_NS)
    names = plain(recording.tables["activities"]["name"])[schedule.rows[work[:1]]]
    name = short_name(texts(recording.tables, names)[0])
    is_random = name == _SEQUENCES and any(
        _OF_CUPY in frame.filename
        for stack in np.unique(stacks_of(recording.tables, schedule.call[work[:1]])).tolist()
        for frame in recording.call_stacks.frames(stack)
    )
    if is_random:
        shorter[work] = of_generator(schedule, work, shorter[work])
    change = ScheduleChange(duration=shorter)
    line = _line(schedule, work, total_ns)
    return Finding(
        rule="R42",
        title=(
            f"{_shown(name)} takes {format_share(total_ns / busy_ns)} of the GPU's busy time on "
            f"{_width(kernels)}."
        ),
        reason=_reason(kernels, int(shorter[work].sum()), is_random=is_random),
        change=RANDOM_ADVICE if is_random else _advice(schedule, work, line),
        certainty="possible",
        device=device,
        saved_ns=schedule.saved_alone(change),
        schedule=change,
        lines=(line,),
        evidence=schedule.evidence(work),
    )


def _of_narrow_blocks(schedule: Schedule, narrow: NarrowBlocks, device: int) -> Finding:
    """Return the finding about a kernel in blocks of fewer threads than a warp."""
    recording, work = schedule.recording, narrow.work
    names = plain(recording.tables["activities"]["name"])[schedule.rows[work[:1]]]
    name = short_name(texts(recording.tables, names)[0])
    total_ns = int(schedule.duration[work].sum())
    shorter = schedule.duration.copy()
    shorter[work] = narrow.with_full_warps
    change = ScheduleChange(duration=shorter)
    line = _line(schedule, work, total_ns)
    launches = format_counted(len(work), "launch", "launches")
    take = "takes" if len(work) == 1 else "take"
    return Finding(
        rule="R42",
        title=f"{_shown(name)} takes {format_share(total_ns / _busy_ns(schedule, device))} of the "
        f"GPU's busy time in blocks of {format_counted(narrow.threads, 'thread')}, for warps of "
        f"{WARP}.",
        reason=f"{launches} {take} {format_duration(total_ns)}, in "
        f"{format_count(narrow.blocks)} blocks each. A warp runs {WARP} threads of one block at "
        f"once; here {format_count(WARP - narrow.threads)} of them are missing. With full warps, "
        f"they would take {format_duration(int(narrow.with_full_warps.sum()))}; more if the "
        "threads of a warp do different things.",
        change=f"Launch {text_of(line)} with larger blocks, such as 256 threads, and "
        "correspondingly fewer of them: the kernel computes its position from `blockIdx`, "
        "`blockDim` and `threadIdx`, and returns if that is past the end of its arrays.",
        certainty="possible",
        device=device,
        saved_ns=schedule.saved_alone(change),
        schedule=change,
        lines=(line,),
        evidence=schedule.evidence(work),
    )


def _line(schedule: Schedule, work: np.ndarray, total_ns: int) -> Line:
    """Return the line that launches some work, with its time."""
    recording = schedule.recording
    stack = int(stacks_of(recording.tables, schedule.call[work[:1]])[0])
    return line_of(recording, stack, format_duration(total_ns))


def _shown(name: str) -> str:
    return f"`{name}`" if name else "A kernel"


def _advice(schedule: Schedule, work: np.ndarray, line: Line) -> str:
    last = "Steps that each need the result of the one before cannot be spread."
    if are_independent(schedule, work):
        last = (
            "Launches that follow each other use different arrays: on several streams in turn, "
            "they run at the same time."
        )
    return (
        f"Spread the work of {text_of(line)} over more blocks: a larger grid if the program "
        "chooses it; otherwise another axis order or data layout, a different function for the "
        "same result (a matrix product for a sum along an axis, a reduction in two steps), or "
        f"several such operations in one. {last}"
    )


def _width(kernels: _Kernels) -> str:
    blocks = int(np.median(kernels.blocks))
    counted = "one thread block" if blocks == 1 else f"{format_count(blocks)} thread blocks"
    of_gpu = f"; the GPU has {format_count(kernels.multiprocessors)} multiprocessors"
    return counted + of_gpu if kernels.multiprocessors else counted


def _reason(kernels: _Kernels, shorter_ns: int, *, is_random: bool) -> str:
    launches = format_counted(len(kernels.work), "launch", "launches")
    take = "takes" if len(kernels.work) == 1 else "take"
    most = kernels.occupancy.most_at_once
    at_once = "" if most == 1 else f", at most {format_count(most)} at the same time"
    if is_random:
        took = format_duration(shorter_ns)
        bound = f"A `cupy.random.Generator` takes about {took} for the same amount of numbers."
    elif kernels.multiprocessors:
        bound = (
            f"Spread over all of them, such blocks would take {format_duration(shorter_ns)}; less "
            "if several of them run well on one multiprocessor, more if memory limits them."
        )
    else:
        bound = (
            "The recording does not contain the number of multiprocessors; the saving is that of a "
            "kernel that takes no time."
        )
    return (
        f"{launches} {take} {format_duration(kernels.occupancy.union_ns)}{at_once}. A thread block "
        "runs on one multiprocessor; the others are idle meanwhile, because no other kernel runs. "
        f"{bound}"
    )
