"""R08: elementwise operations pass arrays on that one kernel for all of them would not need."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import function_names
from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.fusion.fused_code import fused_code
from gpuviz.advice.fusion.fusion import Groups, fusible
from gpuviz.advice.fusion.reduction_kernels import least_durations, reduction_kernel
from gpuviz.advice.host.host_gaps import host_gaps
from gpuviz.advice.host_lines import line_numbers, line_of, text_of
from gpuviz.advice.kernels.kernel_times import thread_ns
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.call_paths import operations_of
from gpuviz.analysis.launches import stacks_of
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration

RULES = (
    Rule(
        "R08",
        "temporary arrays of an expression",
        "elementwise functions of one line, or of several in a function and those that it calls, "
        "pass arrays on that nothing else uses, also to a reduction, or at least four rounds of a "
        "loop update one array from the same ones; the saving of time assumes one launch of a "
        "kernel that takes as long as its remaining arrays at their highest rate, or as its "
        "elements take at least and what is computed beyond that; where CUB reduces along an axis, "
        "or arrays are broadcast, at least as long as a `ReductionKernel` takes for as many "
        "elements, unless a matrix product adds up the products",
        "`cupy.fuse`, `ElementwiseKernel`: the finding has the code of short expressions",
    ),
)

# An empty kernel takes about 2 µs on an H100, and a kernel of 5 µs does not wait for memory.
_EMPTY_NS = 2_000
_SHORTEST_NS = 5_000
# What a launch costs on the host, and what a GPU's memory moves in a ns; they only rank lines.
_LAUNCH_NS = 10_000
_BYTES_EACH_NS = 2_000
_MOST_LINES = 8


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find elementwise operations of CuPy that could be one kernel.

    Trigger: see `gpuviz.advice.fusion.fusion.fusible`; on one line or several of a function and of
    those that it calls, with the reductions that read their results. The text of each line has at
    least as many operators and calls as a group has launches there in a round of a loop, in one
    call of its function: otherwise each round may use the result of the round before.

    Savings: the decrease of the peak without the arrays that are only passed on. And the
    recording's `Schedule`, replayed with one launch for each group. Its kernel takes as long as the
    memory that remains to be read and written, at the highest rate of these kernels, or as long as
    its elements take at least, and what the launches take beyond both, which is what they compute.
    """
    groups = fusible(device)
    if not len(groups.group):
        return
    stacks = stacks_of(device.recording.tables, groups.call)
    lines = line_numbers(device.recording, stacks)
    groups, lines = _of_expressions(device, groups, stacks, lines)
    is_last = np.append(groups.group[1:] != groups.group[:-1], True)[: len(lines)]
    number = _by_lines(groups, lines)
    worth = np.where(is_last, 0, _LAUNCH_NS) + groups.passed / _BYTES_EACH_NS
    totals = np.bincount(number, worth)
    for each in np.argsort(-totals, kind="stable")[:_MOST_LINES]:
        yield _finding(device, groups.of(np.flatnonzero(number == each)))


def _by_lines(groups: Groups, lines: np.ndarray) -> np.ndarray:
    """Return a number for each launch, equal for groups of the same lines.

    The last round of a loop may pass on more than the others, and is another group then.
    """
    span = np.int64(lines.max(initial=0) + 1)
    group, line = np.divmod(np.unique(groups.group.astype(np.int64) * span + lines), span)
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    # Sums of random numbers are equal for equal sets only.
    drawn = np.random.default_rng(0).integers(1 << 63, size=int(span), dtype=np.uint64)
    sets = np.add.reduceat(drawn[line], starts) if len(starts) else drawn[:0]
    rows = np.searchsorted(group[starts], groups.group)
    numbers: np.ndarray = np.unique(sets, return_inverse=True)[1][rows]
    return numbers


def _of_expressions(
    device: DeviceBlocks, groups: Groups, stacks: np.ndarray, lines: np.ndarray
) -> tuple[Groups, np.ndarray]:
    """Return the groups whose launches are not the rounds of a loop, and their lines."""
    # A function that an expression calls twice has two call stacks there.
    distinct, stack = np.unique(stacks, return_inverse=True)
    operations = operations_of(device.recording, distinct)
    parts, count = np.unique(
        np.stack([groups.group, stack, groups.round]), axis=1, return_counts=True
    )
    repeats = parts[0, count > operations[parts[1]]]
    rows = np.flatnonzero(~np.isin(groups.group, repeats))
    return groups.of(rows), lines[rows]


def _finding(device: DeviceBlocks, groups: Groups) -> Finding:
    schedule = device.schedule
    blocks = groups.temporary[groups.temporary >= 0]
    change = Change(blocks, device.begin[blocks], device.begin[blocks])
    work = schedule.number[groups.activity]
    faster = _schedule_change(device, groups, work)
    lines = _lines(device, groups, schedule.duration[work])
    rounds = int(groups.rounds.max())
    launched = format_counted(len(work), "launch", "launches")
    total = format_duration(int(schedule.duration[work].sum()))
    kernels = len(np.unique(groups.group))
    functions = function_names(device.recording, groups.activity)
    take = "take" if "," in functions else "takes"
    return Finding(
        rule="R08",
        title=_title(lines, format_bytes(int(device.size[blocks].sum())), rounds),
        reason=f"{functions} {take} {total} in {launched}. "
        f"{_passed(len(blocks), rounds)} {format_counted(kernels, 'launch', 'launches')} of one "
        "kernel would keep the elements in registers.",
        change=_change(device, groups, lines),
        certainty="likely",
        device=device.device,
        saved_ns=schedule.saved_alone(faster),
        lines=lines,
        evidence=schedule.evidence(work),
        lifetimes=change,
        schedule=faster,
    )


def _title(lines: tuple[Line, ...], size: str, rounds: int) -> str:
    more, s = len(lines) - 1, "" if len(lines) > 1 else "s"
    others = f" and {format_counted(more, 'line')} before it" if more else ""
    what = f"{text_of(lines[0])}{others}"
    if rounds > 1:
        return f"{what} update{s} the same array {format_count(rounds)} times in a row."
    once = "" if more else " and reads them once"
    return f"{what} write{s} {size} to temporary arrays{once}."


def _passed(arrays: int, rounds: int) -> str:
    """Return why one kernel is enough."""
    if rounds > 1:
        return "Each round reads the same arrays and what the round before has written;"
    are = "is" if arrays == 1 else "are"
    return f"{format_counted(arrays, 'array')} of them {are} only read by the next ones;"


def _change(device: DeviceBlocks, groups: Groups, lines: tuple[Line, ...]) -> str:
    if (groups.rounds > 1).any():
        return (
            "Make one kernel of all rounds: a `cupy.ElementwiseKernel` with a loop, or a kernel of "
            "your own."
        )
    what = "the expression" if len(lines) == 1 else "these lines"
    advice = f"Make one kernel of {what}, with `cupy.fuse` or `cupy.ElementwiseKernel`."
    if (groups.launch < 0).any():
        advice = reduction_kernel(device, groups).advice(what)
    code = fused_code(device, groups)
    example = f" Such as `{code}`." if code else ""
    if code and device.elementwise.is_update[groups.launch[groups.group == groups.group[0]]].any():
        example += " Its output is the array that it updates."
    return f"{advice}{example}"


def _lines(device: DeviceBlocks, groups: Groups, duration: np.ndarray) -> tuple[Line, ...]:
    """Return the lines of the launches, the last one first."""
    recording = device.recording
    stacks = stacks_of(recording.tables, groups.call)
    numbers = line_numbers(recording, stacks)
    sums = np.bincount(numbers, duration)
    rows = {int(number): row for row, number in enumerate(numbers.tolist())}
    last_first = sorted(rows.items(), key=lambda item: -item[1])
    return tuple(
        line_of(recording, int(stacks[row]), format_duration(int(sums[number])))
        for number, row in last_first
    )


def _schedule_change(device: DeviceBlocks, groups: Groups, work: np.ndarray) -> ScheduleChange:
    """Return the schedule with one launch of one kernel for each group."""
    schedule = device.schedule
    duration = schedule.duration.copy()
    duration[work] = _fused_durations(device, groups, duration[work])
    joined, instant = np.zeros(len(duration), bool), np.zeros(len(schedule.called), bool)
    is_last = np.append(groups.group[1:] != groups.group[:-1], True)
    joined[work[~is_last]] = True
    instant[groups.call[~is_last]] = True
    gaps = instant & host_gaps(schedule.recording, device.device).is_short
    return ScheduleChange(duration=duration, joined=joined, instant=instant, without_gap=gaps)


def _fused_durations(device: DeviceBlocks, groups: Groups, duration: np.ndarray) -> np.ndarray:
    """Return the share of each launch in the time of one kernel for its group, in ns."""
    is_long = duration >= _SHORTEST_NS
    if not is_long.any():
        fastest = float(_BYTES_EACH_NS)
    else:
        fastest = float((groups.moved[is_long] / duration[is_long]).max())
    elements = np.append(device.elementwise.elements, 0)[groups.launch] * (groups.launch >= 0)
    threads = elements * thread_ns(device)
    _, group = np.unique(groups.group, return_inverse=True)
    computed = duration - np.maximum(np.maximum(groups.moved / fastest, threads), _EMPTY_NS)
    remaining = np.bincount(group, groups.moved - groups.passed)
    total = np.bincount(group, duration)
    # A kernel that reduces has fewer threads than elements.
    once = np.zeros(len(total))
    np.maximum.at(once, group, threads)
    once[group[groups.launch < 0]] = 0
    least = np.bincount(group, np.maximum(computed, 0))
    least = least_durations(device, groups, elements, least)
    fused = np.minimum(np.maximum(remaining / fastest, np.maximum(least + once, _EMPTY_NS)), total)
    shares: np.ndarray = (duration * (fused / np.maximum(total, 1))[group]).astype(np.int64)
    return shares
