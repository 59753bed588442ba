"""R25: copies of pinned memory that could run while kernels do."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import line_numbers, longest_lines
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import COPY, KERNEL
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.libraries import is_of
from gpuviz.advice.waits.needless_orders import begins_without
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.codes import CallKind
from gpuviz.data.columns import codes
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_count, format_duration

RULES = (
    Rule(
        "R25",
        "copies in line with kernels",
        "a line makes at least four asynchronous copies of 100 µs or more from or to pinned "
        "memory, less than half hidden by kernels, which were launched early enough, or enough "
        "kernels after them, to run beside others, of which each hides one copy only, and no "
        "needless orders of R23 and R24 cause most of that",
        "a stream for the copies of each direction, and two or three buffers",
    ),
)

_CHANGE = (
    "Copy on a second stream, with two buffers in turn: while a kernel works on one, the other is "
    "filled or read. Order each copy and its kernels by events."
)
_IN_BOTH_DIRECTIONS = (
    "Copy on two more streams, one for each direction, with three buffers in turn: while a kernel "
    "works on one, the next is filled, and the one before is read. Order each copy and its kernels "
    "by events."
)
_OF_TORCH = (
    "Copy the next batch on a second stream while the model works on this one: "
    "`with torch.cuda.stream(side): batch = next_batch.to(device, non_blocking=True)`, then "
    "`torch.cuda.current_stream().wait_stream(side)` and `batch.record_stream(...)` before it is "
    "used."
)
_TO_HOST_OF_TORCH = (
    "Copy the result on a second stream while the model works on the next batch: "
    "`side.wait_stream(torch.cuda.current_stream())`, then `with torch.cuda.stream(side): "
    "host.copy_(result, non_blocking=True)` with two pinned tensors in turn, and "
    "`result.record_stream(side)`."
)
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_DEVICE, _TO_HOST = (_COPY_KINDS.index(kind) for kind in ("host_to_device", "device_to_host"))
_MEMORIES = DICTIONARIES["activities", "host_memory"]
# ratelprof's rule "hidden_transfers": shorter copies are not worth another stream.
_SHORTEST_NS = 100_000
_MOST_HIDDEN = 0.5
# Of the saving, what another stream for the copies still saves at most without needless orders.
_LEAST_LEFT = 0.5
# A pipeline needs several steps.
_LEAST_COPIES = 4


@dataclass(frozen=True, slots=True)
class _Copies:
    """Copies of a device in one or both directions, and for how long each could overlap, in ns."""

    work: np.ndarray
    could_overlap: np.ndarray


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find long copies of pinned memory that wait in line with kernels.

    Trigger: a line makes at least four asynchronous copies of at least 100 µs from or to pinned
    memory, of which kernels hide less than half, although they could run at another time: a copy to
    the device between its launch and its start, a copy to the host during kernels of its stream
    that were launched before it ended. A kernel hides one copy of each direction only, so that
    nothing hides the copies with which a program begins. At least 1 % of the recording is saved. If
    orders of the
    default stream or of events that nothing needs cause most of that, it is R23 or R24: another
    stream for the copies would have to wait, too.

    Saving: the recording's `Schedule`, replayed with copies that take only the rest; at most the
    device's busy time without the longest of its kernels, its copies to the device, and its copies
    to the host. The program may need two buffers, or the result at once: ``possible``.
    """
    recording = schedule.recording
    activities = recording.tables["activities"]
    memories = codes(activities["host_memory"], _MEMORIES)[schedule.rows]
    directions = codes(activities["copy_kind"], _COPY_KINDS)[schedule.rows]
    chosen = (schedule.kind == COPY) & np.isin(directions, [_TO_DEVICE, _TO_HOST])
    chosen &= (memories == _MEMORIES.index("pinned")) & (schedule.duration >= _SHORTEST_NS)
    synchronous = np.append(schedule.call_kinds == CallKind.MEMCPY, True)
    chosen &= ~synchronous[schedule.call]
    for device in recording.devices:
        of_device = schedule.device == device
        kernels = of_device & (schedule.kind == KERNEL)
        busy = Intervals(schedule.begin[kernels], schedule.end[kernels])
        work = _repeated(schedule, np.flatnonzero(chosen & of_device))
        hidden = busy.within(schedule.begin[work], schedule.end[work]).sum()
        if not work.size or hidden >= _MOST_HIDDEN * schedule.duration[work].sum():
            continue
        copies = {each: of_device & (directions == each) for each in (_TO_DEVICE, _TO_HOST)}
        others = kernels | copies[_TO_HOST]
        is_read = directions[work] == _TO_HOST
        could = np.zeros(len(work), np.int64)
        could[~is_read] = _before(schedule, work[~is_read], others)
        could[is_read] = _after(schedule, work[is_read])
        engines = (kernels, *copies.values())
        at_least = max(int(schedule.duration[each].sum()) for each in engines)
        yield from _finding(schedule, _Copies(work, could), device, at_least)


def _repeated(schedule: Schedule, work: np.ndarray) -> np.ndarray:
    """Return the copies of lines that copy several times."""
    tables = schedule.recording.tables
    lines = line_numbers(schedule.recording, stacks_of(tables, schedule.call[work]))
    _, numbers, counts = np.unique(lines, return_inverse=True, return_counts=True)
    return work[counts[numbers] >= _LEAST_COPIES]


def _before(schedule: Schedule, work: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Return how much of each copy would fit beside other work between its launch and its start.

    Args:
        schedule: The recording's schedule.
        work: The copies.
        others: Mask of the work of other engines.

    Returns:
        The times in ns.
    """
    busy = Intervals(schedule.begin[others], schedule.end[others])
    first = np.zeros(len(work), np.int64)
    launched, begin = schedule.launch_begin()[work], schedule.begin[work]
    done = busy.within(first, np.maximum(launched, first))
    return _fitting(schedule, work, done, busy.within(first, np.maximum(begin, first)))


def _after(schedule: Schedule, work: np.ndarray) -> np.ndarray:
    """Return how much of each copy would fit beside the next kernels of its stream, in ns."""
    launched = np.where(schedule.call >= 0, schedule.launch_begin(), schedule.begin)
    time = np.zeros(len(work), np.int64)
    for stream in np.unique(schedule.stream[work]):
        of_stream = np.flatnonzero(schedule.stream == stream)
        of_stream = of_stream[np.argsort(launched[of_stream], kind="stable")]
        is_kernel = schedule.kind[of_stream] == KERNEL
        lengths = np.where(is_kernel, schedule.duration[of_stream], 0)
        done = np.concatenate([[0], np.cumsum(lengths)])
        rows = np.flatnonzero(schedule.stream[work] == stream)
        copies, known = work[rows], launched[of_stream]
        before = np.searchsorted(known, launched[copies], side="right")
        until = np.searchsorted(known, schedule.end[copies], side="right")
        time[rows] = _fitting(schedule, copies, done[before], done[until])
    return time


def _fitting(
    schedule: Schedule, work: np.ndarray, first: np.ndarray, until: np.ndarray
) -> np.ndarray:
    """Return how much of each copy fits beside its part of other work, in ns.

    A direction has one engine: of copies in a row, each has to wait for the others, so that the
    same work hides only one of them.

    Args:
        schedule: The recording's schedule.
        work: The copies of one direction.
        first: Where the part of each begins, as a length of that work, in ns.
        until: Where it ends.
    """
    time = np.zeros(len(work), np.int64)
    used = 0
    for place in np.argsort(schedule.begin[work], kind="stable").tolist():
        used = max(used, int(first[place]))
        time[place] = max(min(int(schedule.duration[work[place]]), int(until[place]) - used), 0)
        used += int(time[place])
    return time


def _change(schedule: Schedule, work: np.ndarray) -> str:
    kinds = codes(schedule.recording.tables["activities"]["copy_kind"], _COPY_KINDS)
    is_read = kinds[schedule.rows[work]] == _TO_HOST
    if not is_of(schedule.recording, "torch"):
        return _IN_BOTH_DIRECTIONS if is_read.any() and not is_read.all() else _CHANGE
    length = schedule.duration[work]
    return _TO_HOST_OF_TORCH if 2 * length[is_read].sum() > length.sum() else _OF_TORCH


def _finding(
    schedule: Schedule, copies: _Copies, device: int, at_least_ns: int
) -> Iterator[Finding]:
    recording, work = schedule.recording, copies.work
    shorter = schedule.duration.copy()
    shorter[work] -= copies.could_overlap
    of_device = np.flatnonzero(schedule.device == device)
    most, *without_orders = (
        Intervals(begin[of_device], (begin + schedule.duration)[of_device]).length - at_least_ns
        for begin in begins_without(schedule, device)
    )
    change = ScheduleChange(duration=shorter, at_most_ns=most)
    saved_ns = schedule.saved_alone(change)
    is_caused = any(each < _LEAST_LEFT * saved_ns for each in without_orders)
    if saved_ns < schedule.relevant_ns or is_caused:
        return
    total_ns = int(schedule.duration[work].sum())
    yield Finding(
        rule="R25",
        title=(
            f"{format_count(len(work))} copies of pinned memory take {format_duration(total_ns)} "
            "in line with kernels instead of beside them."
        ),
        reason=(
            "They were launched early enough, or enough kernels after them, to run beside other "
            f"kernels for {format_duration(int(copies.could_overlap.sum()))}."
        ),
        change=_change(schedule, work),
        certainty="possible",
        device=device,
        saved_ns=saved_ns,
        schedule=change,
        lines=longest_lines(
            recording, stacks_of(recording.tables, schedule.call[work]), schedule.duration[work]
        ),
        evidence=schedule.evidence(work),
    )
