"""R30 and R31: what a call writes is overwritten before anything reads it."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import WRITE
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import line_numbers, line_of, text_of
from gpuviz.advice.needless.whole_writes import overwrites
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.replay.trace import COPY, KINDS
from gpuviz.advice.rule import Rule
from gpuviz.advice.source.libraries import by_library
from gpuviz.advice.source.own_lines import is_own
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import plain
from gpuviz.quantities import format_bytes, format_counted, format_duration

RULES = (
    Rule(
        "R30",
        "a result that is overwritten unread",
        "a line copies into arrays, or computes them with an elementwise function, and the next "
        "use of each of them overwrites all of it",
        "leave it out",
    ),
    Rule(
        "R31",
        "a fill that is overwritten",
        "the same of a memset: `cupy.zeros`, `fill(0)`",
        "`cupy.empty`",
    ),
)

_MEMSET = KINDS.index("memset")
# With the longest writes.
_MOST_LINES = 8


@dataclass(frozen=True, eq=False, slots=True)
class _Writes:
    """Calls that write into one block and do nothing else, in columns.

    Attributes:
        work: The indices of their activities in the schedule.
        block: The block, an index of the device's blocks.
        overwritten_by: The row of ``api_calls`` that overwrites it; -1 if something may read it.
    """

    work: np.ndarray
    block: np.ndarray
    overwritten_by: np.ndarray


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find the lines whose writes something always overwrites before anything reads them.

    Trigger: a line makes memsets (R31), or copies or elementwise operations (R30). The next use of
    each block that they write overwrites all of it and does not read it: a memset or a copy of as
    many bytes as the block has, or an elementwise function of CuPy whose output and an input have
    as many elements as the block, both from its beginning. Nothing may have read it in between, as
    work whose arrays are unknown may. The line calls CuPy itself.

    An elementwise function has a thread for each element, and thread blocks of 128: it might write
    up to 127 elements less, which the recording does not tell. Then this is only ``possible``.

    Saving: the recording's `Schedule`, replayed without these calls.
    """
    writes, schedule = _writes(device), device.schedule
    calls = schedule.call[writes.work]
    stacks = stacks_of(device.recording.tables, calls)
    lines = line_numbers(device.recording, stacks)
    own = is_own(device.recording, stacks)
    for fills in (True, False):
        is_fill = (schedule.kind[writes.work] == _MEMSET) == fills
        needed = lines[is_fill & ((writes.overwritten_by < 0) | ~own)]
        found = np.flatnonzero(is_fill & ~np.isin(lines, needed))
        _, number = np.unique(lines[found], return_inverse=True)
        total = np.bincount(number, schedule.duration[writes.work[found]])
        for line in np.argsort(-total, kind="stable")[:_MOST_LINES]:
            chosen = found[number == line]
            finding = _finding(device, writes, chosen, is_fill=fills)
            if finding.saved_ns:
                yield finding


def _writes(device: DeviceBlocks) -> _Writes:
    used, schedule = device.used, device.schedule
    # By block, then in the order of the calls.
    order = np.argsort(used.block, kind="stable")
    order = order[device.place[used.block[order]] >= 0]
    block, call = used.block[order], used.call[order]
    work = schedule.number[used.activity[order]]
    changes = np.ones(len(order) + 1, bool)
    changes[1:-1] = (block[1:] != block[:-1]) | (call[1:] != call[:-1])
    alone = changes[1:] & changes[:-1]
    writes = alone & (used.mode[order] == WRITE) & (used.activity[order] >= 0)
    whole = writes & overwrites(device, order, work)
    follows = np.zeros(len(order), bool)
    follows[:-1] = whole[1:] & (block[1:] == block[:-1])
    times = plain(device.recording.tables["api_calls"]["time"])
    unknown = times[used.opaque]
    after = np.append(call[1:], -1)[: len(call)]
    first = np.searchsorted(unknown, times[call])
    follows &= np.searchsorted(unknown, times[after], side="right") == first
    place = device.place[block]
    follows &= ~device.is_shared[place]
    only = writes & _does_nothing_else(device, work, call)
    return _Writes(work[only], place[only], np.where(follows, after, -1)[only])


def _does_nothing_else(device: DeviceBlocks, work: np.ndarray, call: np.ndarray) -> np.ndarray:
    """Return which writes are of memsets, copies, or elementwise functions with one output."""
    schedule = device.schedule
    kinds = schedule.kind[np.minimum(work, len(schedule.kind) - 1)]
    simple: np.ndarray = np.isin(kinds, (COPY, _MEMSET)) | np.isin(call, device.elementwise.call)
    return simple


def _finding(
    device: DeviceBlocks, writes: _Writes, chosen: np.ndarray, *, is_fill: bool
) -> Finding:
    recording, schedule = device.recording, device.schedule
    work = writes.work[chosen]
    calls = schedule.call[work]
    duration = schedule.duration.copy()
    duration[work] = 0
    is_gone = np.zeros(recording.tables["api_calls"].num_rows, bool)
    is_gone[calls] = True
    change = ScheduleChange(duration=duration, without_wait=is_gone, instant=is_gone)
    total_ns = int(schedule.duration[work].sum())
    stacks = stacks_of(recording.tables, np.array([calls[0], writes.overwritten_by[chosen[0]]]))
    line = line_of(recording, int(stacks[0]), format_duration(total_ns))
    after = line_of(recording, int(stacks[1]), "")
    others = writes.overwritten_by[chosen]
    size = format_bytes(int(device.requested[writes.block[chosen]].sum()))
    exact = np.isin(others, schedule.call[np.isin(schedule.kind, (COPY, _MEMSET))])
    does = "fills" if is_fill else "writes"
    library = by_library(recording, {"torch": "torch"}, "cupy")
    instead = f" (`{library}.empty` instead of `{library}.zeros`)" if is_fill else ""
    unless = "" if exact.all() else f", if {text_of(after)} writes every element"
    return Finding(
        rule="R31" if is_fill else "R30",
        title=f"{text_of(line)} {does} {size} that {text_of(after)} overwrites.",
        reason=f"Nothing reads the array in between. {format_counted(len(work), 'call')} of the "
        f"line took {format_duration(total_ns)} on the GPU.",
        change=f"Leave it out{instead}{unless}.",
        certainty="likely" if exact.all() else "possible",
        device=device.device,
        saved_ns=schedule.saved_ns(change),
        lines=(line,),
        evidence=schedule.evidence(work),
        schedule=change,
    )
