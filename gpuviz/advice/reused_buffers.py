"""Waits for copies of pinned memory that the program uses again."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.advice.trace import COPY
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.tables import DICTIONARIES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.advice.schedule import Schedule
    from gpuviz.advice.waits import Waits

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_WITH_HOST = [_COPY_KINDS.index(each) for each in ("host_to_device", "device_to_host")]
# Of the time that a line waits. The last rounds of a loop use no buffer again.
_LEAST_SHARE = 0.9
_NEVER = -1


def waits_to_reuse(schedule: "Schedule", waits: "Waits") -> bool:
    """Return whether a line waits as late as the pinned memory that it waits for allows.

    That is so if most of the time it waits for a copy from or to a block of pinned memory that the
    next copy from or to the same block follows, and the program had launched other work since. The
    host may read a result or change a source only between the two copies.
    """
    if len(schedule.recording.devices) > 1:
        return False
    launched, until, stream = _copies(schedule)
    if not len(launched):
        return False
    awaited, launch_begin = _awaited(schedule, waits.all_calls), schedule.launch_begin()
    launches, calls = np.sort(launch_begin[schedule.call >= 0]), waits.calls
    needed = np.zeros(len(calls), bool)
    since: dict[int, int] = {}
    for row in np.argsort(schedule.called[calls], kind="stable").tolist():
        call = int(calls[row])
        work = awaited.get(call, _NEVER)
        if work < 0 or schedule.call[work] < 0:
            continue
        began, ended = int(schedule.called[call]), int(schedule.returned[call])
        of_work, of_stream = int(launch_begin[work]), int(schedule.stream[work])
        first = since.get(of_stream, _NEVER)
        since[of_stream] = of_work
        is_late = np.searchsorted(launches, began) > np.searchsorted(launches, of_work, "right")
        pending = slice(*np.searchsorted(launched, [first, of_work], side="right"))
        is_reused = (stream[pending] == of_stream) & (until[pending] >= ended)
        needed[row] = is_late and bool(is_reused.any())
    length = waits.end - waits.begin
    return bool(length[needed].sum() >= _LEAST_SHARE * length.sum())


def _copies(schedule: "Schedule") -> "tuple[NDArray[Any], ...]":
    """Return the copies from or to blocks of pinned memory, in the order of their launches.

    Returns:
        When each was launched, when the next one of the same block was (-1 if none was), and the
        stream.
    """
    tables = schedule.recording.tables
    pinned = np.unique(plain(tables["host_memory_events"]["address"]))
    table = tables["launch_blocks"]
    blocks = plain(table["block"])
    rows = np.flatnonzero(np.isin(blocks, pinned))
    activity = first_rows(
        plain(tables["activities"]["correlation"]), plain(table["correlation"])[rows]
    )
    known = activity >= 0
    work, block = schedule.number[activity[known]], blocks[rows[known]]
    kinds = codes(tables["activities"]["copy_kind"], _COPY_KINDS)[activity[known]]
    is_copy = (work >= 0) & np.isin(kinds, _WITH_HOST)
    is_copy &= (schedule.kind[work] == COPY) & (schedule.call[work] >= 0)
    work, block = work[is_copy], block[is_copy]
    launched = schedule.launch_begin()[work]
    order = np.lexsort((launched, block))
    until = np.full(len(work), _NEVER)
    same = block[order[1:]] == block[order[:-1]]
    until[order[:-1][same]] = launched[order[1:][same]]
    by_launch = np.argsort(launched, kind="stable")
    return launched[by_launch], until[by_launch], schedule.stream[work][by_launch]


def _awaited(schedule: "Schedule", calls: "NDArray[Any]") -> dict[int, int]:
    """Return the activity that each call waits for; of several, the one launched last."""
    constraints = schedule.constraints
    rows = np.flatnonzero((constraints.work >= 0) & np.isin(constraints.call, calls))
    rows = rows[constraints.call[rows] >= 0]
    work = constraints.work[rows]
    order = np.argsort(schedule.launch_begin()[work], kind="stable")
    return dict(zip(constraints.call[rows[order]].tolist(), work[order].tolist(), strict=True))
