"""What the host did while a device was idle because of it: samples, collections, preparation."""

from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.intervals import Intervals, overlaps
from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.preparation import PREPARATIONS, preparations
from gpuviz.analysis.steady_state import cells
from gpuviz.data.call_stacks import NO_STACK
from gpuviz.data.codes import HOST_STATES
from gpuviz.data.columns import codes, plain
from gpuviz.data.conclusions import schemas
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.manifest import Manifest
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import schemas as tables_of_recordings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from gpuviz.data.call_stacks import Frame

_CAUSES = WORDS["idle_gaps", "cause"]
_HOST = _CAUSES.index("host")
# Idle time that the host's preparation causes: it has not launched, or it allocates.
_OF_PREPARATION = tuple(_CAUSES.index(cause) for cause in ("host", "allocation", "unknown"))
_COLLECTION = HOST_STATES.index("collection")
_MOST_ROWS = 5_000
_OWN_THREADS = "gpuviz-"
_LOADER = "/torch/utils/data/dataloader.py"
_PACKAGES = ("site-packages", "dist-packages")


@dataclass(frozen=True, slots=True)
class Work:
    """Something that the host does at one line.

    Attributes:
        kind: A word of `gpuviz.data.codes.HOST_STATES` or of
            `gpuviz.analysis.preparation.PREPARATIONS`.
        site: ``function (file:line)`` of the user's innermost line; empty if unknown.
        source: Its text; empty if unknown.
        function: The function that the line calls, if it belongs to a library.
        library: The library's name.
        holder: The name of the thread that has the GIL.
        loads: Whether it gets a batch from torch's data loader; the line is that of the loop then.
        stack: One of its call stacks; 0 if unknown.
    """

    kind: str
    site: str = ""
    source: str = ""
    function: str = ""
    library: str = ""
    holder: str = ""
    loads: bool = False
    stack: int = field(default=0, compare=False)

    @property
    def is_wait(self) -> bool:
        """Whether the thread waits."""
        return self.kind in ("waiting", "gil")

    @property
    def is_of_gpuviz(self) -> bool:
        """Whether it waits for one of gpuviz's own threads, which the program has only here."""
        return self.holder.startswith(_OWN_THREADS)

    @property
    def text(self) -> str:
        """The work in a few words."""
        line = f"`{self.source.strip()}`" if self.source.strip() else self.site
        called = f" ({self.function} of {self.library})" if self.library else ""
        at = f" in {line}{called}" if line else ""
        if self.loads:
            return f"getting a batch of the data loader{at}"
        if self.kind == "gil":
            holder = f" that thread {self.holder} holds" if self.holder else ""
            return f"waiting for the GIL{holder}{at}"
        if self.kind == "collection":
            return f"garbage collection{at}"
        if self.kind == "waiting":
            return f"waiting{at}"
        if self.kind in PREPARATIONS:
            return "first use of a library" if self.kind == PREPARATIONS[-1] else self.kind
        return f"{line}{called}" if line else "unknown code"


@dataclass(frozen=True, slots=True)
class HostWork:
    """What the host did in a device's idle time, in pieces in order of time.

    Attributes:
        works: The distinct works.
        begin: When each piece begins, in ns since the recording's start.
        end: When it ends.
        work: The number of its work.
        activity: The row of the activity that ended the idle time.
    """

    works: tuple[Work, ...]
    begin: "NDArray[Any]"
    end: "NDArray[Any]"
    work: "NDArray[Any]"
    activity: "NDArray[Any]"


@Once
def _known(_: "RecordingData") -> dict[int, HostWork]:
    return {}


def host_work(recording: "RecordingData", device: int) -> HostWork:
    """Return what the host did while a device was idle because of it, where that is known.

    A device waits for the thread that launches its next work. Compilation, loading and first use
    come first, then garbage collections, then samples; the rest of the time has no piece, nor has
    the time between notebook cells. Computed once for each device.
    """
    known = _known(recording)
    if device not in known:
        known[device] = _host_work(recording, device)
    return known[device]


def is_sampled(recording: "RecordingData") -> bool:
    """Return whether threads were sampled between their calls."""
    return bool(recording.tables["host_samples"].num_rows)


def works(recording: "RecordingData", device: int | None = None) -> pa.Table:
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
def host_work_rows(recording: "RecordingData") -> pa.Table:
    """Return the longest pieces of all devices, as the table ``host_work``, in order of time."""
    parts = [schemas()["host_work"].empty_table()]
    for device in recording.devices:
        found = host_work(recording, device)
        longest = np.argsort(found.begin - found.end, kind="stable")[:_MOST_ROWS]
        rows = np.sort(longest)
        works = [found.works[number] for number in found.work[rows].tolist()]
        columns = {
            "device": np.full(len(rows), device),
            "time": found.begin[rows],
            "end": found.end[rows],
            "activity": found.activity[rows],
            "text": [work.text for work in works],
            "stack": [work.stack for work in works],
        }
        parts.append(pa.table(columns, schema=schemas()["host_work"]))
    return pa.concat_tables(parts)


def newest_host_work(tables: "Mapping[str, pa.Table]", gaps: pa.Table) -> pa.Table:
    """Return the table ``host_work`` of the newest rows of a recording in progress.

    First use is not in it, because what ran before is not known.

    Args:
        tables: Their tables, of which those that are missing are empty.
        gaps: Their ``idle_gaps``.
    """
    known = {name: schema.empty_table() for name, schema in tables_of_recordings().items()}
    end = max((int(plain(gaps["end"]).max(initial=0)), 1))
    part = RecordingData.of_checked({**known, **tables}, Manifest(window_end_ns=end))
    derived.keep(part, {"idle_gaps": gaps})
    return host_work_rows(part)


def _host_work(recording: "RecordingData", device: int) -> HostWork:
    numbers: dict[Work, int] = {}
    parts: list[tuple[NDArray[Any], ...]] = []
    for thread, gaps in _gaps_by_thread(recording, device):
        for begin, end, works_of, gap in _pieces(recording, thread, gaps):
            known = [numbers.setdefault(each, len(numbers)) for each in works_of]
            parts.append((begin, end, np.array(known, np.int64), gap))
    columns = [np.concatenate(each) for each in zip(*parts, strict=True)]
    if not columns:
        columns = [np.zeros(0, np.int64)] * 4
    order = np.argsort(columns[0], kind="stable")
    begin, end, work, activity = (column[order] for column in columns)
    return HostWork(tuple(numbers), begin, end, work, activity)


@dataclass(frozen=True, slots=True)
class _Gaps:
    """Idle times of a device that end with work of one thread, in order of time."""

    begin: "NDArray[Any]"
    end: "NDArray[Any]"
    activity: "NDArray[Any]"
    is_host: "NDArray[Any]"


def _gaps_by_thread(recording: "RecordingData", device: int) -> "Iterator[tuple[int, _Gaps]]":
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
    for thread in np.unique(threads).tolist():
        own = np.flatnonzero(threads == thread)
        own = own[np.argsort(begin[own], kind="stable")]
        yield (
            thread,
            _Gaps(begin[own], end[own], activity[own], causes[rows][own] == _HOST),
        )


def _pieces(
    recording: "RecordingData", thread: int, gaps: _Gaps
) -> "Iterator[tuple[NDArray[Any], NDArray[Any], list[Work], NDArray[Any]]]":
    """Yield pieces: begins, ends, works, and the activities that end their gaps."""
    asked = cells(recording)
    taken = Intervals(np.zeros(0, np.int64), np.zeros(0, np.int64))
    for kind, spans in zip(PREPARATIONS, preparations(recording, thread), strict=True):
        free = (spans if asked is None else spans.common(asked)).without(taken)
        gap, _, begin, end = overlaps(gaps.begin, gaps.end, free.begin, free.end)
        yield begin, end, [Work(kind)] * len(begin), gaps.activity[gap]
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
        works = _works(recording, of_rows)
        yield begin, end, works, gaps.activity[late][gap]
        taken = taken.joined(spans)


def _works(recording: "RecordingData", rows: "NDArray[Any]") -> list[Work]:
    table = recording.tables["host_samples"]
    states = codes(table["state"], HOST_STATES)[rows]
    stacks, holders = (plain(table[name])[rows] for name in ("stack", "holder"))
    names = _thread_names(recording)
    keys = list(zip(states.tolist(), stacks.tolist(), holders.tolist(), strict=True))
    known: dict[tuple[int, int, int], Work] = {}
    for state, stack, holder in dict.fromkeys(keys):
        site, source = recording.call_stacks.call_site(stack)
        function, library = _called(recording, stack)
        loop = _loop_of_loader(recording, stack)
        if loop is not None:
            site, source, function, library = loop.site, loop.source, "", ""
        known[state, stack, holder] = Work(
            kind=HOST_STATES[state],
            site="" if site == NO_STACK else site,
            source=source,
            function=function,
            library=library,
            holder=names.get(holder, ""),
            loads=loop is not None,
            stack=stack,
        )
    return [known[key] for key in keys]


@Once
def _thread_names(recording: "RecordingData") -> dict[int, str]:
    rows = recording.tables["threads"].to_pylist()
    return {row["id"]: row["name"] or str(row["id"]) for row in rows if row["id"]}


def _loop_of_loader(recording: "RecordingData", stack: int) -> "Frame | None":
    """Return the program's line that asks torch's data loader for a batch; None if none does."""
    frames = recording.call_stacks.frames(stack)
    of_loader = [at for at, frame in enumerate(frames) if frame.filename.endswith(_LOADER)]
    if not of_loader:
        return None
    return next((frame for frame in frames[of_loader[-1] :] if not frame.is_installed), None)


def _called(recording: "RecordingData", stack: int) -> tuple[str, str]:
    """Return the library function that the user's innermost line calls, and its library."""
    frames = recording.call_stacks.frames(stack)
    own = [place for place, frame in enumerate(frames) if not frame.is_installed]
    if not own or own[0] == 0:
        return "", ""
    called = frames[own[0] - 1]
    if not called.filename:
        return "", ""
    return called.name, _library(called.filename)


def _library(filename: str) -> str:
    """Return the name of the package of an installed file, or of Python's module."""
    parts = PurePath(filename).with_suffix("").parts
    for place in range(len(parts) - 2, -1, -1):
        if parts[place] in _PACKAGES or parts[place].startswith("python3"):
            return parts[place + 1]
    return parts[-1]
