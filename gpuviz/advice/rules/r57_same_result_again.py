"""R57: work that computes the same values again and again."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.elementwise import function_names
from gpuviz.advice.finding import Finding, Line
from gpuviz.advice.host_gaps import host_gaps
from gpuviz.advice.host_lines import text_of
from gpuviz.advice.repeated_work import RepeatedWork
from gpuviz.advice.rule import Rule
from gpuviz.advice.schedule import ScheduleChange
from gpuviz.analysis.device_replay import total_memory
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import plain
from gpuviz.data.strings import are_named
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gpuviz.advice.device_blocks import DeviceBlocks
    from gpuviz.data.recording_data import RecordingData

RULES = (
    Rule(
        "R57",
        "the same values computed again",
        "at least four times, kernels get the same arguments and read arrays that have not changed,"
        " nothing changes their results but elementwise functions, which can write other arrays "
        "instead, and work that is different each time reads these; the GPU has room for them "
        "beside its peak; the saving leaves out all of this work but the first",
        "compute them once, before the loop, and keep the array",
    ),
)

_COPY = re.compile(r"cupy_copy__(\w+)_\1$")
_IF_A_VIEW = (
    " A function that copies an array because it is not contiguous, such as a transposed one, does "
    "not copy `cupy.ascontiguousarray(x)`."
)
# Each group of lines costs a replay of the schedule.
_MOST_GROUPS = 8


def find(device: "DeviceBlocks") -> "Iterator[Finding]":
    """Find what a loop computes in each round although it does not change.

    Trigger: see `gpuviz.advice.repeated_work.RepeatedWork`. Lines that read each other's
    results are one finding. Copies inside a function of CuPy, as those of arrays that are not
    contiguous, can be made once outside of it.

    Saving: the recording's `Schedule`, replayed without this work but the first of each value, and
    without its calls. The work could read what gpuviz does not see, such as a constant in the
    device's memory: ``likely``.
    """
    repeated = RepeatedWork(device)
    again = np.flatnonzero(repeated.is_again)
    if not len(again):
        return
    total = total_memory(device.recording, device.device)
    if total and device.peak.bytes + repeated.kept_bytes(again)[0] > total:
        return
    schedule = device.schedule
    work = schedule.number[repeated.activity[again]]
    known, line = _lines(device, repeated, again)
    group = repeated.groups(line)[line]
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
    device: "DeviceBlocks", repeated: RepeatedWork, again: "NDArray[Any]"
) -> "tuple[list[Line], NDArray[Any]]":
    """Return the lines of some work, and the number of the line of each."""
    stacks = stacks_of(device.recording.tables, repeated.call[again])
    distinct, place = np.unique(stacks, return_inverse=True)
    lines: dict[str, Line] = {}
    found = []
    for stack in distinct.tolist():
        frame = repeated.line(stack)
        site, source = (frame.site, frame.source) if frame else ("", "")
        lines.setdefault(site, Line(site, source, "", stack))
        found.append(list(lines).index(site))
    return list(lines.values()), np.array(found, np.int64)[place.ravel()]


def _finding(
    device: "DeviceBlocks",
    repeated: RepeatedWork,
    again: "NDArray[Any]",
    lines: tuple[Line, ...],
    kept: tuple[int, int],
) -> Finding:
    recording, schedule = device.recording, device.schedule
    calls = repeated.call[again]
    work = schedule.number[repeated.activity[again]]
    duration = schedule.duration.copy()
    duration[work] = 0
    is_gone = np.zeros(len(schedule.called), bool)
    is_gone[calls] = True
    gaps = is_gone & host_gaps(recording, device.device).is_short
    change = ScheduleChange(
        duration=duration, without_wait=is_gone, without_gap=gaps, instant=is_gone
    )
    times = 1 + int(np.unique(repeated.value[again], return_counts=True)[1].max())
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
    if more:
        what += f" and {format_counted(more, 'more line')}"
    elif repeated.is_part_of_line(lines[0].stack):
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
        change=f"Compute {this} {_once(*kept, result)}.{if_a_view}{otherwise}",
        certainty="likely",
        device=device.device,
        saved_ns=schedule.saved_alone(change),
        lines=lines,
        evidence=schedule.evidence(work),
        schedule=change,
    )


def _only_copies(recording: "RecordingData", activities: "NDArray[Any]") -> bool:
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
