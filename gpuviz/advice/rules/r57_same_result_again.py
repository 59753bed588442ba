"""R57: work that computes the same values again and again."""

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import function_names
from gpuviz.advice.arrays.equal_arrays import EqualArrays, equal_arrays
from gpuviz.advice.evidence import Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.host.calls_left_out import without_calls
from gpuviz.advice.host_lines import line_of, text_of
from gpuviz.advice.needless.repeated_work import RepeatedWork
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.library_calls import LibraryCall
from gpuviz.analysis.device_replay import total_memory
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration

RULES = (
    Rule(
        "R57",
        "the same values computed again",
        "at least four times, kernels get the same arguments and read arrays that have not changed,"
        " nothing changes their results but elementwise functions, which can write other arrays "
        "instead, and work that is different each time reads these; no backward pass goes through "
        "them to parameters; the GPU has room for them beside its peak; or at least four arrays of "
        "a line, or that autocast makes of a parameter, hold the same values at the peak; the "
        "saving leaves out all of this work and of these arrays but the first",
        "compute them once, before the loop, and keep the array; convert a sparse matrix before the"
        " operation that needs another format; enter `torch.autocast` around the loop",
    ),
)

_MEMORIES = DICTIONARIES["memory_operations", "memory"]
_MANAGED = _MEMORIES.index("managed")
_COPY = re.compile(r"cupy_copy__(\w+)_\1$")
_IF_A_VIEW = (
    " A function that copies an array because it is not contiguous, such as a transposed one, does "
    "not copy `cupy.ascontiguousarray(x)`."
)
_IN_EACH_REGION = (
    "Autocast converts a parameter once and keeps the copy until the outermost `torch.autocast` "
    "ends. Here it converts the same parameter again and again, and all copies are kept."
)
_ONE_REGION = (
    "Enter `torch.autocast` once, around the loop that runs this line, instead of in each round "
    "(and without `cache_enabled=False`). If that loop also contains `optimizer.step()`, exit "
    "`torch.autocast` before it: the copies keep the values from before the step. Autocast keeps "
    "no copy of parameters that need no gradient, of buffers and of views: convert those once, "
    "such as by `module.bfloat16()`."
)
_FROM_THE_SAME = "The arguments of {} are the same, and nothing changes what they read or write."
_ONE_ARRAY = "Compute this once, before the loop, and use that array each time."
_UNTIL_CHANGED = (
    "Compute this again only when what it reads has changed, and use the same array until then."
)
# Each group of lines costs a replay of the schedule.
_MOST_GROUPS = 8


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find what a loop computes in each round although it does not change.

    Trigger: see `gpuviz.advice.needless.repeated_work.RepeatedWork`. Not in a recording with
    managed memory, which the host may change without a call. Lines that read each other's results
    are one finding. Copies inside a function of CuPy, as those of arrays that are not contiguous,
    can be made once outside of it.

    Saving: the recording's `Schedule`, replayed without this work but the first of each value, and
    without its calls. The work could read what gpuviz does not see, such as a constant in the
    device's memory: ``likely``.

    Arrays of a line that hold the same values at the same time are found too: see
    `gpuviz.advice.arrays.equal_arrays.equal_arrays`. They save all bytes but those of one, which
    lives from the first of them to the last.
    """
    memory = device.recording.tables["memory_operations"]["memory"]
    if (codes(memory, _MEMORIES) == _MANAGED).any():
        return
    repeated = RepeatedWork(device)
    again = np.flatnonzero(repeated.is_again)
    for equal in equal_arrays(device, repeated):
        yield _equal(device, repeated, equal)
        again = np.setdiff1d(again, equal.work)
    if not len(again):
        return
    total = total_memory(device.recording, device.device)
    if total and device.peak.bytes + repeated.kept_bytes(again)[0] > total:
        return
    schedule = device.schedule
    work = schedule.number[repeated.activity[again]]
    known, line = _lines(device, repeated, again)
    group = repeated.groups(again, line)[line]
    spent = np.bincount(group, schedule.duration[work])
    for each in np.argsort(-spent, kind="stable")[:_MOST_GROUPS].tolist():
        chosen = group == each
        if chosen.any():
            by_line = np.bincount(line[chosen], schedule.duration[work[chosen]], len(known))
            lines = tuple(
                replace(known[row], amount=format_duration(int(by_line[row])))
                for row in np.argsort(-by_line, kind="stable").tolist()
                if by_line[row]
            )
            own = repeated.kept_bytes(again[chosen])
            yield _finding(device, repeated, again[chosen], lines, own)


def _lines(
    device: DeviceBlocks, repeated: RepeatedWork, again: np.ndarray
) -> tuple[list[Line], np.ndarray]:
    """Return the lines of some work, and the number of the line of each."""
    stacks = stacks_of(device.recording.tables, repeated.call[again])
    distinct, place = np.unique(stacks, return_inverse=True)
    lines: dict[str, Line] = {}
    found = []
    for stack in distinct.tolist():
        called = repeated.library_call(stack)
        frame = called.line if called else repeated.line(stack)
        site, source = (frame.site, frame.source) if frame else ("", "")
        part = f"{called.name} {site}" if called else site
        lines.setdefault(part, Line(site, source, "", stack))
        found.append(list(lines).index(part))
    return list(lines.values()), np.array(found, np.int64)[place.ravel()]


def _finding(
    device: DeviceBlocks,
    repeated: RepeatedWork,
    again: np.ndarray,
    lines: tuple[Line, ...],
    kept: tuple[int, int],
) -> Finding:
    recording, schedule = device.recording, device.schedule
    work = schedule.number[repeated.activity[again]]
    calls = np.union1d(repeated.call[again], repeated.further_calls(again))
    change = _left_out(device, work, calls)
    called = repeated.library_call(lines[0].stack)
    counts = np.unique(repeated.value[again], return_counts=True)[1]
    # A function may compute a value twice itself.
    times = 1 + int(np.median(counts) if called else counts.max())
    updates, results, otherwise = repeated.updates_of(again), " or their results", ""
    if updates.size:
        results = ""
        otherwise = (
            f" {function_names(recording, updates)} must then write another array (`y = x + 1` "
            "instead of `x += 1`)."
        )
    more = len(lines) - 1
    names = function_names(recording, repeated.activity[again])
    what, this, result = text_of(lines[0]), "these" if more else "this", "the result"
    if called:
        what, this, result = f"{called.subject} in {what}", "this call", "its result"
    are_parts = [
        not repeated.library_call(each.stack) and repeated.is_part_of_line(each.stack)
        for each in lines
    ]
    if more:
        what += f" and {format_counted(more, 'more line')}"
        if any(are_parts):
            what, this = f"Parts of {what}", "these parts"
    elif are_parts[0]:
        what, this, result = f"A part of {what} ({names})", "this part", "its result"
    launches = format_counted(len(work), "launch", "launches")
    does, if_a_view = "compute" if more else "computes", ""
    if _only_copies(recording, repeated.activity[again]):
        does = "copy" if more else "copies"
        # A line that only copies says so itself.
        if_a_view = _IF_A_VIEW if this == "this part" else ""
    return Finding(
        rule="R57",
        title=f"{what} {does} the same values {format_count(times)} times.",
        reason=f"The arguments of {names} are the same each time, and nothing changes what they "
        f"read{results}. {launches} after the first of each take "
        f"{format_duration(int(schedule.duration[work].sum()))}.",
        change=f"{_change(called, this, _once(*kept, result))}{if_a_view}{otherwise}",
        certainty="likely",
        device=device.device,
        saved_ns=schedule.saved_alone(change),
        lines=lines,
        evidence=schedule.evidence(work),
        schedule=change,
    )


def _left_out(device: DeviceBlocks, work: np.ndarray, calls: np.ndarray) -> ScheduleChange:
    """Return the schedule without some activities and calls, rows of ``api_calls``."""
    schedule = device.schedule
    duration = schedule.duration.copy()
    duration[work] = 0
    is_gone = np.zeros(len(schedule.called), bool)
    is_gone[calls] = True
    return without_calls(device, duration, is_gone)


def _equal(device: DeviceBlocks, repeated: RepeatedWork, equal: EqualArrays) -> Finding:
    """Return the finding about arrays that hold the same values at the same time."""
    recording, schedule = device.recording, device.schedule
    again = equal.work[~equal.is_first]
    work = schedule.number[repeated.activity[again]]
    change = _left_out(device, work, repeated.call[again])
    at_peak = device.at_peak[equal.blocks]
    held, values = equal.blocks[at_peak], len(np.unique(equal.value[at_peak]))
    size = format_bytes(int(device.size[held].sum()))
    line = line_of(recording, int(repeated.stacks[again[0]]), size)
    names = function_names(recording, repeated.activity[again])
    launches = format_counted(len(work), "launch", "launches")
    spent = format_duration(int(schedule.duration[work].sum()))
    same = "the same values" if values == 1 else f"the values of {format_count(values)} arrays"
    return Finding(
        rule="R57",
        title=f"{format_counted(len(held), 'array')} of {text_of(line)} hold {same} at the peak, "
        f"{size}.",
        reason=f"{_IN_EACH_REGION if equal.is_autocast else _FROM_THE_SAME.format(names)} "
        f"{launches} of {names} after the first of each take {spent}.",
        change=_ONE_REGION
        if equal.is_autocast
        else (_ONE_ARRAY if values == 1 else _UNTIL_CHANGED),
        certainty="likely",
        device=device.device,
        saved_ns=schedule.saved_alone(change),
        lines=(line,),
        evidence=device.lines.evidence(held),
        lifetimes=equal.change(device),
        schedule=change,
    )


def _change(called: LibraryCall | None, this: str, once: str) -> str:
    """Return what to change so that work is done once.

    Args:
        called: The call of a library function that does it; None if none alone does.
        this: What does it.
        once: Where to compute it.
    """
    if called is None or not called.is_conversion:
        return f"{'Make' if called else 'Compute'} {this} {once}."
    return (
        f"The operation needs another format and converts the matrix each time: convert it {once}, "
        f"as by `converted = matrix.{called.function}()`, and use `converted` only in this "
        "operation, since others may need the present format."
    )


def _only_copies(recording: RecordingData, activities: np.ndarray) -> bool:
    """Return whether some work is kernels of CuPy that copy elements to others of their type."""
    names = plain(recording.tables["activities"]["name"])[activities]
    return bool(are_named(recording.tables, names, _COPY.match).all())


def _once(at_a_time: int, in_all: int, result: str) -> str:
    """Return where to compute something, by the bytes of its results."""
    if not in_all:
        return f"once, before the loop, and keep {result}"
    if at_a_time == in_all:
        return f"once, before the loop, and keep {result} ({format_bytes(in_all)})"
    return (
        "once for each value of the inputs, outside the loop that repeats the work, and keep "
        f"{result} ({format_bytes(at_a_time)} at a time)"
    )
