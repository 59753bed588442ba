"""When a training program was in a forward pass, a backward pass or a step of an optimizer."""

from typing import NamedTuple, Self

import numpy as np
import pyarrow as pa

from gpuviz.analysis.launches import phases_of
from gpuviz.analysis.processes import processes
from gpuviz.data.codes import ALL_RANGE_KINDS, PHASES
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.conclusions import schemas
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS

_OTHER, _FORWARD, _BACKWARD, _OPTIMIZER = range(len(PHASES))
_KIND = np.array([ALL_RANGE_KINDS.index(phase or "range") for phase in PHASES], np.int8)
_FOREVER = 2**62
_OF_EVENTS = ("time", "thread", "stack")
_OF_CALLS = ("time", "end", "thread", "stack")


class PhasedWork(NamedTuple):
    """Allocations and CUDA calls with known call stacks, in the order in which they began.

    Attributes:
        begin: When each began, in ns.
        end: When each returned.
        thread: Its thread.
        phase: The position in ``PHASES`` of the part of a training step that it belongs to.
    """

    begin: np.ndarray
    end: np.ndarray
    thread: np.ndarray
    phase: np.ndarray

    @classmethod
    def of(cls, recording: RecordingData) -> Self:
        """Return the work of a recording."""
        events, calls = recording.tables["memory_events"], recording.tables["api_calls"]
        events = events.slice(recording.manifest.initial_events)
        is_allocation = codes(events["action"], ACTIONS) == ACTIONS.index("alloc")
        allocated, *rest = (plain(events[name])[is_allocation] for name in _OF_EVENTS)
        parts = [(allocated, allocated, *rest), tuple(plain(calls[name]) for name in _OF_CALLS)]
        begin, end, thread, stack = (np.concatenate(each) for each in zip(*parts, strict=True))
        known = np.flatnonzero(stack != 0)
        order = known[np.argsort(begin[known], kind="stable")]
        phase = phases_of(recording.tables, stack[order])
        return cls(begin[order], np.maximum(begin, end)[order], thread[order], phase)

    def at(self, rows: np.ndarray) -> Self:
        """Return some of the work."""
        return type(self)(*(column[rows] for column in self))

    def begins_of(self, phase: int) -> np.ndarray:
        """Return when parts of a step of a phase began: its work that follows another phase's."""
        known = self.at(np.flatnonzero(self.phase != _OTHER))
        is_chosen = known.phase == phase
        begins: np.ndarray = known.begin[is_chosen & ~np.append(False, is_chosen[:-1])]
        return begins


@Once
def phase_rows(recording: RecordingData) -> pa.Table:
    """Return the table ``phases`` of `gpuviz.data.conclusions`."""
    parts = [each.recording for each in processes(recording)] or [recording]
    schema = schemas()["phases"]
    tables, next_id = [schema.empty_table()], _next_id(recording)
    for part in parts:
        found = _of_process(part)
        if len(found.begin):
            ids = np.arange(next_id, next_id + len(found.begin))
            next_id += len(ids)
            tables.append(_table(part, found, ids))
    return pa.concat_tables(tables)


def _next_id(recording: RecordingData) -> int:
    """Return the id after those of all ranges."""
    return int(plain(recording.tables["ranges"]["id"]).max(initial=0)) + 1


def _of_process(recording: RecordingData) -> PhasedWork:
    """Return the time from the first to the last work of each phase, without a break between.

    Work of another phase ends a phase, and so does work of the training's thread that belongs to
    none, and a time that was not recorded. Threads of autograd work for the thread that waits for
    them, which is known only if all other work of training is in one thread; otherwise there are no
    phases. Without calls there are none either, because what happens between two allocations is
    unknown.
    """
    work = PhasedWork.of(recording)
    is_training = (work.phase == _FORWARD) | (work.phase == _OPTIMIZER)
    threads = distinct(work.thread[is_training])
    if len(threads) != 1 or not recording.tables["api_calls"].num_rows:
        return work.at(np.zeros(0, np.int64))
    work = work.at(np.flatnonzero((work.thread == threads[0]) | (work.phase == _BACKWARD)))
    part, is_recorded = _recorded_parts(recording, work.begin)
    changes = (work.phase[1:] != work.phase[:-1]) | (part[1:] != part[:-1])
    first = np.flatnonzero(np.append(True, changes)[: len(work.phase)])
    begin = work.begin[first]
    end = np.maximum.reduceat(work.end, first) if len(first) else begin
    if recording.bounds is not None:
        begin, end = (np.clip(each, *recording.bounds) for each in (begin, end))
    kept = (work.phase[first] != _OTHER) & is_recorded[first] & (begin < end)
    found = PhasedWork(begin, end, np.full(len(first), threads[0]), work.phase[first])
    return found.at(np.flatnonzero(kept))


def _recorded_parts(recording: RecordingData, times: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a number that is equal within a part, and whether calls were recorded in it."""
    spans = recording.tables["unrecorded_spans"]
    begin, end = plain(spans["time"]), plain(spans["end"])
    begun = np.searchsorted(np.sort(begin), times, side="right")
    ended = np.searchsorted(np.sort(np.where(end < 0, _FOREVER, end)), times, side="right")
    return begun + ended, begun == ended


def _table(recording: RecordingData, found: PhasedWork, ids: np.ndarray) -> pa.Table:
    kinds = pa.DictionaryArray.from_arrays(pa.array(_KIND[found.phase]), pa.array(ALL_RANGE_KINDS))
    columns = {
        "id": ids,
        "time": found.begin,
        "end": found.end,
        "name": np.zeros(len(ids), np.uint32),
        "kind": kinds,
        "thread": found.thread,
        "parent": _parents(recording, found),
    }
    schema = schemas()["phases"]
    return pa.table([pa.array(columns[field.name], field.type) for field in schema], schema=schema)


def _parents(recording: RecordingData, found: PhasedWork) -> list[int]:
    """Return the id of the innermost range around each phase; 0 if there is none."""
    ranges = recording.tables["ranges"]
    own = np.flatnonzero(plain(ranges["thread"]) == found.thread[0])
    own = own[np.argsort(plain(ranges["time"])[own], kind="stable")]
    ids, begins, ends, around = (
        plain(ranges[name])[own] for name in ("id", "time", "end", "parent")
    )
    end_of = dict(zip(ids.tolist(), np.where(ends < 0, _FOREVER, ends).tolist(), strict=True))
    parent_of = dict(zip(ids.tolist(), around.tolist(), strict=True))
    before = np.searchsorted(begins, found.begin, side="right") - 1
    parents = []
    for place, end in zip(before.tolist(), found.end.tolist(), strict=True):
        parent = int(ids[place]) if place >= 0 else 0
        while end_of.get(parent, _FOREVER) < end:
            # In a damaged file ranges may be around each other.
            parent = parent_of[parent] if parent_of[parent] < parent else 0
        parents.append(parent if parent in end_of else 0)
    return parents
