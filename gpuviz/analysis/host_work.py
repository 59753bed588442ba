"""What the host did while a device was idle because of it: samples, collections, preparation."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.handovers import (
    handing_threads,
    handovers,
    waiting_stacks,
    waits_beside_launches,
)
from gpuviz.analysis.intervals import Intervals, overlaps
from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.preparation import PREPARATIONS, preparations
from gpuviz.analysis.sampled_work import Work, works_of
from gpuviz.analysis.steady_state import cells
from gpuviz.data.arrays import array, empty
from gpuviz.data.codes import HOST_STATES
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.conclusions import schemas
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.manifest import Manifest
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import Tables
from gpuviz.data.tables import schemas as tables_of_recordings

_CAUSES = WORDS["idle_gaps", "cause"]
_HOST = _CAUSES.index("host")
# Idle time that the host's preparation causes: it has not launched, or it allocates.
_OF_PREPARATION = tuple(_CAUSES.index(cause) for cause in ("host", "allocation", "unknown"))
_COLLECTION = HOST_STATES.index("collection")
_MOST_ROWS = 5_000


@dataclass(frozen=True, slots=True)
class HostWork:
    """What the host did in a device's idle time, in pieces in order of time.

    Attributes:
        works: The distinct works.
        begin: When each piece begins, in ns since the recording's start.
        end: When it ends.
        work: The number of its work.
        activity: The row of the activity that ended the idle time.
        is_beside_launches: Whether the thread waits while another one launches work.
    """

    works: tuple[Work, ...]
    begin: np.ndarray
    end: np.ndarray
    work: np.ndarray
    activity: np.ndarray
    is_beside_launches: np.ndarray


@Once
def _known(_: RecordingData) -> dict[int, HostWork]:
    return {}


def host_work(recording: RecordingData, device: int) -> HostWork:
    """Return what the host did while a device was idle because of it, where that is known.

    A device waits for the thread that launches its next work, and until that has some for the
    thread that hands it over; see `gpuviz.analysis.handovers`. Compilation, loading and first use
    come first, then garbage collections, then samples; the rest of the time has no piece, nor has
    the time between notebook cells. Computed once for each device.
    """
    known = _known(recording)
    if device not in known:
        known[device] = _host_work(recording, device)
    return known[device]


def is_sampled(recording: RecordingData) -> bool:
    """Return whether threads were sampled between their calls."""
    return bool(recording.tables["host_samples"].num_rows)


def works(recording: RecordingData, device: int | None = None) -> pa.Table:
    """Return the idle time of devices by what the host did meanwhile, most first.

    Columns: ``work`` (its kind), ``text``, ``function`` and ``library`` (what the line calls, if
    that belongs to a library), ``site``, ``source``, ``stack``, ``holder`` (the thread that has the
    GIL), ``idle_ns`` and ``count`` (the number of idle gaps).

    Raises:
        ValueError: The recording has no such device.
    """
    if device is not None and device not in recording.devices:
        raise ValueError(f"the recording has no device {device}")
    rows = []
    for each in recording.devices if device is None else [device]:
        found = host_work(recording, each)
        for number, work in enumerate(found.works):
            own = found.work == number
            rows.append(
                {
                    "work": work.kind,
                    "text": work.text,
                    "function": work.function,
                    "library": work.library,
                    "site": work.site,
                    "source": work.source,
                    "stack": work.stack,
                    "holder": work.holder,
                    "idle_ns": int((found.end - found.begin)[own].sum()),
                    "count": len(np.unique(found.activity[own])),
                }
            )
    texts = ("work", "text", "function", "library", "site", "source", "holder")
    schema = pa.schema(
        [(name, pa.utf8()) for name in texts]
        + [("stack", pa.uint32()), ("idle_ns", pa.int64()), ("count", pa.int64())]
    )
    return pa.Table.from_pylist(rows, schema).sort_by([("idle_ns", "descending")])


@Once
def host_work_rows(recording: RecordingData) -> pa.Table:
    """Return the longest pieces of all devices, as the table ``host_work``, in order of time."""
    schema = schemas()["host_work"]
    parts = [schema.empty_table()]
    for device in recording.devices:
        found = host_work(recording, device)
        longest = np.argsort(found.begin - found.end, kind="stable")[:_MOST_ROWS]
        rows = np.sort(longest)
        works = [found.works[number] for number in found.work[rows].tolist()]
        columns: dict[str, Any] = {
            "device": np.full(len(rows), device),
            "time": found.begin[rows],
            "end": found.end[rows],
            "activity": found.activity[rows],
            "text": [work.text for work in works],
            "stack": [work.stack for work in works],
        }
        arrays = [array(columns[field.name], field.type) for field in schema]
        parts.append(pa.table(arrays, schema=schema))
    return pa.concat_tables(parts)


def newest_host_work(tables: Tables, gaps: pa.Table) -> pa.Table:
    """Return the table ``host_work`` of the newest rows of a recording in progress.

    First use is not in it, because what ran before is not known.

    Args:
        tables: Their tables, of which those that are missing are empty.
        gaps: Their ``idle_gaps``.
    """
    known = {name: empty(schema) for name, schema in tables_of_recordings().items()}
    end = max((int(plain(gaps["end"]).max(initial=0)), 1))
    part = RecordingData.of_checked({**known, **tables}, Manifest(window_end_ns=end))
    derived.keep(part, {"idle_gaps": gaps})
    return host_work_rows(part)


def _host_work(recording: RecordingData, device: int) -> HostWork:
    numbers: dict[Work, int] = {}
    parts: list[tuple[np.ndarray, ...]] = []
    for thread, gaps in _with_handing_threads(recording, device):
        for begin, end, of_pieces, gap, beside in _pieces(recording, thread, gaps):
            known = [numbers.setdefault(each, len(numbers)) for each in of_pieces]
            parts.append((begin, end, np.array(known, np.int64), gap, beside))
    columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
    if not columns:
        columns = [*[np.zeros(0, np.int64)] * 4, np.zeros(0, bool)]
    order = np.argsort(columns[0], kind="stable")
    return HostWork(tuple(numbers), *(column[order] for column in columns))


@dataclass(frozen=True, slots=True)
class _Gaps:
    """Idle times of a device that end with work of one thread, in order of time."""

    begin: np.ndarray
    end: np.ndarray
    activity: np.ndarray
    is_host: np.ndarray


def _with_handing_threads(recording: RecordingData, device: int) -> Iterator[tuple[int, _Gaps]]:
    """Yield the threads that idle times wait for, with those or their parts."""
    handing = handing_threads(recording)
    for thread, gaps in _gaps_by_thread(recording, device):
        if thread not in handing:
            yield thread, gaps
            continue
        until = np.minimum(handovers(recording, thread, gaps.begin), gaps.end)
        yield handing[thread], replace(gaps, end=until)
        yield thread, replace(gaps, begin=until)


def _gaps_by_thread(recording: RecordingData, device: int) -> Iterator[tuple[int, _Gaps]]:
    gaps = derived(recording)["idle_gaps"]
    causes = codes(gaps["cause"], _CAUSES)
    chosen = (plain(gaps["device"]) == device) & (plain(gaps["stream"]) == 0)
    chosen &= np.isin(causes, _OF_PREPARATION) & (plain(gaps["activity"]) >= 0)
    rows = np.flatnonzero(chosen)
    activity = plain(gaps["activity"])[rows]
    launched = plain(recording.tables["activities"]["correlation"])[activity]
    calls = calls_of(recording.tables, launched)
    rows, activity, calls = (each[calls >= 0] for each in (rows, activity, calls))
    threads = plain(recording.tables["api_calls"]["thread"])[calls]
    begin, end = (plain(gaps[name])[rows] for name in ("time", "end"))
    for thread in distinct(threads).tolist():
        own = np.flatnonzero(threads == thread)
        own = own[np.argsort(begin[own], kind="stable")]
        yield (
            thread,
            _Gaps(begin[own], end[own], activity[own], causes[rows][own] == _HOST),
        )


def _pieces(
    recording: RecordingData, thread: int, gaps: _Gaps
) -> Iterator[tuple[np.ndarray, np.ndarray, list[Work], np.ndarray, np.ndarray]]:
    """Yield pieces: begins, ends, works, activities that end their gaps, waits beside launches."""
    asked = cells(recording)
    taken = Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))
    for kind, spans in zip(PREPARATIONS, preparations(recording, thread), strict=True):
        free = (spans if asked is None else spans.common(asked)).without(taken)
        gap, _, begin, end = overlaps(gaps.begin, gaps.end, free.begin, free.end)
        none = np.zeros(len(begin), bool)
        yield begin, end, [Work(kind)] * len(begin), gaps.activity[gap], none
        taken = taken.joined(free)
    table = recording.tables["host_samples"]
    states = codes(table["state"], HOST_STATES)
    of_thread = plain(table["thread"]) == thread
    late = gaps.is_host
    for is_kind in (states == _COLLECTION, states != _COLLECTION):
        rows = np.flatnonzero(of_thread & is_kind)
        rows = rows[np.argsort(plain(table["time"])[rows], kind="stable")]
        sampled, until = (plain(table[name])[rows] for name in ("time", "end"))
        spans = Intervals(sampled, until)
        free = (spans if asked is None else spans.common(asked)).without(taken)
        first, _, begin, end = overlaps(sampled, until, free.begin, free.end)
        gap, piece, begin, end = overlaps(gaps.begin[late], gaps.end[late], begin, end)
        of_rows = rows[first][piece]
        waiting = waiting_stacks(recording)[of_rows]
        works = works_of(recording.tables, recording.call_stacks, of_rows, waiting)
        beside = waits_beside_launches(recording)[of_rows]
        yield begin, end, works, gaps.activity[late][gap], beside
        taken = taken.joined(spans)
