"""Waits for copies of pinned memory that the program uses again."""

from dataclasses import dataclass

import numpy as np

from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.replay.trace import COPY
from gpuviz.advice.waits.pinned_memory import UNKNOWN, pinned_places
from gpuviz.advice.waits.waits import Waits
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import DICTIONARIES

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_DEVICE, _TO_HOST = map(_COPY_KINDS.index, ("host_to_device", "device_to_host"))
_PINNED = DICTIONARIES["activities", "host_memory"].index("pinned")
# Of the time that a line waits. The last rounds of a loop use no buffer again.
_LEAST_SHARE = 0.9
_NEVER = -1


@dataclass(frozen=True, eq=False, slots=True)
class _Copies:
    """Copies from or to pinned memory, in the order of their launches.

    Attributes:
        launched: When each was launched.
        until: When the next copy that uses its memory was; of unknown memory, the last that may;
            -1 if none was.
        stream: Its stream.
        is_unknown_upload: Whether it copies to the GPU from memory that is not known.
    """

    launched: np.ndarray
    until: np.ndarray
    stream: np.ndarray
    is_unknown_upload: np.ndarray


def waits_to_reuse(schedule: Schedule, waits: Waits) -> bool:
    """Return whether a line waits as late as the pinned memory that it waits for allows.

    That is so if most of the time it waits for a copy from or to pinned memory that a later copy
    uses again, and the program had launched other work since. The host may read a result or change
    a source only between the two copies.

    Which pinned memory a copy uses is not always known, see
    `gpuviz.advice.waits.pinned_memory.pinned_places`. Then a later copy in the same direction of as
    many bytes may use it again; after a wait for a copy to the GPU, the next work must be such a
    copy: the program does not wait in order to use the copied array.
    """
    if len(schedule.recording.devices) > 1:
        return False
    copies = _copies(schedule)
    if not len(copies.launched):
        return False
    awaited, launch_begin = _awaited(schedule, waits.all_calls), schedule.launch_begin()
    launches, calls = np.sort(launch_begin[schedule.call >= 0]), waits.calls
    uploads = copies.launched[copies.is_unknown_upload]
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
        pending = slice(*np.searchsorted(copies.launched, [first, of_work], side="right"))
        is_reused = (copies.stream[pending] == of_stream) & (copies.until[pending] >= ended)
        if _first_since(launches, ended) != _first_since(uploads, ended):
            is_reused &= ~copies.is_unknown_upload[pending]
        needed[row] = is_late and bool(is_reused.any())
    length = waits.end - waits.begin
    return bool(length[needed].sum() >= _LEAST_SHARE * length.sum())


def waits_for_results(schedule: Schedule, waits: Waits) -> bool:
    """Return whether a line mostly waits for copies to the host, which it may read then."""
    awaited = _awaited(schedule, waits.calls)
    work = np.array([awaited.get(call, _NEVER) for call in waits.calls.tolist()], np.int64)
    kinds = codes(schedule.recording.tables["activities"]["copy_kind"], _COPY_KINDS)
    copies = (work >= 0) & (schedule.kind[work] == COPY)
    copies &= kinds[schedule.rows[work]] == _TO_HOST
    length = waits.end - waits.begin
    return bool(2 * length[copies].sum() > length.sum())


def _first_since(launched: np.ndarray, time: int) -> int:
    """Return the first of some times in order that is not before a time; -1 without one."""
    place = int(np.searchsorted(launched, time))
    return int(launched[place]) if place < len(launched) else _NEVER


def _copies(schedule: Schedule) -> _Copies:
    """Return the copies from or to pinned memory."""
    activities = schedule.recording.tables["activities"]
    kinds = codes(activities["copy_kind"], _COPY_KINDS)[schedule.rows]
    memories = codes(activities["host_memory"], DICTIONARIES["activities", "host_memory"])
    chosen = (schedule.kind == COPY) & np.isin(kinds, [_TO_DEVICE, _TO_HOST])
    chosen &= (schedule.call >= 0) & (memories[schedule.rows] == _PINNED)
    work = np.flatnonzero(chosen)
    work = work[np.argsort(schedule.launch_begin()[work], kind="stable")]
    launched, place = schedule.launch_begin()[work], pinned_places(schedule, work)
    is_unknown = place == UNKNOWN
    until = np.full(len(work), _NEVER)
    known = np.flatnonzero(~is_unknown)
    known = known[np.argsort(place[known], kind="stable")]
    same = place[known[1:]] == place[known[:-1]]
    until[known[:-1][same]] = launched[known[1:][same]]
    size = plain(activities["bytes"])[schedule.rows[work]]
    alike = np.stack([kinds[work].astype(np.int64), size.astype(np.int64)])[:, is_unknown]
    _, group = np.unique(alike, axis=1, return_inverse=True)
    last = np.full(len(work), _NEVER)
    np.maximum.at(last, group.ravel(), launched[is_unknown])
    until[is_unknown] = last[group.ravel()]
    is_upload = is_unknown & (kinds[work] == _TO_DEVICE)
    return _Copies(launched, until, schedule.stream[work], is_upload)


def _awaited(schedule: Schedule, calls: np.ndarray) -> dict[int, int]:
    """Return the activity that each call waits for; of several, the one launched last."""
    constraints = schedule.constraints
    rows = np.flatnonzero((constraints.work >= 0) & np.isin(constraints.call, calls))
    rows = rows[constraints.call[rows] >= 0]
    work = constraints.work[rows]
    order = np.argsort(schedule.launch_begin()[work], kind="stable")
    return dict(zip(constraints.call[rows[order]].tolist(), work[order].tolist(), strict=True))
