"""Tracks and events of a trace, independent of the viewer's format."""

from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from gpuviz._core import TraceRows, trace_lanes
from gpuviz.data.columns import plain

_LIMIT_NS = 2**60


class Texts:
    """Distinct texts, numbered from 0 in the order of first use."""

    def __init__(self) -> None:
        self._positions: dict[str, int] = {}

    def position(self, text: str) -> int:
        """Return the number of a text."""
        return self._positions.setdefault(text, len(self._positions))

    def all(self) -> list[str]:
        """Return the texts by number."""
        return list(self._positions)


@dataclass(frozen=True, slots=True)
class Track:
    """A row of the viewer.

    Attributes:
        name: Its name; untrusted.
        kind: A ``lane`` is a stream, or holds events that overlap on the track ``parent``.
        process: The id of its process.
        thread: Its id in its process; for a ``thread``, the operating system's.
        parent: The position of its parent track; -1 for a process.
    """

    name: str
    kind: Literal["process", "thread", "lane", "counter"]
    process: int
    thread: int
    parent: int


@dataclass(slots=True, kw_only=True)
class EventTable:
    """Events of one category, in columns of equal length; times in ns.

    Attributes:
        contains: Whether these events may contain others.
        instant: Whether they have no duration.
        flow: The number of the flow into each event; 0 if there is none.
        first_flow: The number of the first of the ``flow_count`` flows from each event.
        arguments: Values by name, negative if absent; texts are given by their numbers.
    """

    category: int
    contains: bool = False
    instant: bool = False
    time: np.ndarray
    end: np.ndarray
    track: np.ndarray
    name: np.ndarray
    flow: np.ndarray | None = None
    first_flow: np.ndarray | None = None
    flow_count: np.ndarray | None = None
    arguments: list[tuple[int, bool, np.ndarray]] = field(default_factory=list)

    def rows(self, chosen: np.ndarray) -> "EventTable":
        """Return some of the events, given by a mask."""

        def some(values: np.ndarray | None) -> np.ndarray | None:
            return None if values is None else values[chosen]

        return replace(
            self,
            time=self.time[chosen],
            end=self.end[chosen],
            track=self.track[chosen],
            name=self.name[chosen],
            flow=some(self.flow),
            first_flow=some(self.first_flow),
            flow_count=some(self.flow_count),
            arguments=[(name, is_text, values[chosen]) for name, is_text, values in self.arguments],
        )

    def native(self) -> TraceRows:
        """Return the table for the native core."""

        def column(values: np.ndarray | None, kind: Any) -> np.ndarray:
            return np.ascontiguousarray([] if values is None else values, kind)

        return TraceRows(
            category=self.category,
            contains=self.contains,
            instant=self.instant,
            time=column(self.time, np.int64),
            end=column(self.end, np.int64),
            track=column(self.track, np.uint32),
            name=column(self.name, np.uint32),
            flow=column(self.flow, np.uint64),
            first_flow=column(self.first_flow, np.uint64),
            flow_count=column(self.flow_count, np.uint32),
            arguments=[(name, is_text, column(v, np.int64)) for name, is_text, v in self.arguments],
        )


@dataclass(frozen=True, slots=True)
class Counter:
    """Values of a track in bytes; each holds from its time in ns."""

    track: int
    time: np.ndarray
    value: np.ndarray


class Trace:
    """Tracks, their events and counters, and the texts these refer to.

    Events of a track may overlap until `separate` moves them to additional tracks.
    """

    def __init__(self) -> None:
        self.tracks: list[Track] = []
        self.names = Texts()
        self.argument_names = Texts()
        self.argument_texts = Texts()
        self.tables: list[EventTable] = []
        self.counters: list[Counter] = []
        self.hosts: dict[int, str] = {}  # by the id of a process
        self._last_thread: dict[int, int] = {}

    def add_process(self, name: str, process: int, host: str) -> int:
        """Return the position of the track of a new process."""
        self.tracks.append(Track(name, "process", process, 0, -1))
        self.hosts[process] = host
        return len(self.tracks) - 1

    @property
    def shown(self) -> dict[int, Track]:
        """The tracks by their positions."""
        return dict(enumerate(self.tracks))

    @property
    def first_time_ns(self) -> int:
        """The time of the first event or value; 0 if none is negative."""
        tables = [int(table.time.min()) for table in self.tables if len(table.time)]
        counters = [int(counter.time.min()) for counter in self.counters]
        return min([0, *tables, *counters])

    def host_of(self, track: Track) -> str:
        """Return the host of a track."""
        return self.hosts[track.process]

    def of_host(self, host: str) -> "HostTrace":
        """Return what is on one host."""
        return HostTrace(self, host)

    def add_track(
        self,
        name: str,
        parent: int,
        kind: Literal["thread", "lane", "counter"] = "lane",
        thread: int | None = None,
    ) -> int:
        """Return the position of a new track; ``thread`` defaults to a free id."""
        process = self.tracks[parent].process
        if thread is None:
            thread = self._last_thread.get(process, 0) + 1
        self._last_thread[process] = max(self._last_thread.get(process, 0), thread)
        self.tracks.append(Track(name, kind, process, thread, parent))
        return len(self.tracks) - 1

    def number(self, name: str, values: np.ndarray) -> tuple[int, bool, np.ndarray]:
        """Return an argument with numeric values."""
        return self.argument_names.position(name), False, values

    def text(self, name: str, positions: np.ndarray) -> tuple[int, bool, np.ndarray]:
        """Return an argument with texts, given as positions in ``argument_texts``."""
        return self.argument_names.position(name), True, positions

    def separate(self) -> None:
        """Move events that overlap without nesting to additional tracks of the same name."""
        lanes = trace_lanes([table.native() for table in self.tables])
        further: dict[tuple[int, int], int] = {}
        for table, lane in zip(self.tables, lanes, strict=True):
            rows = np.flatnonzero(lane)
            pairs = np.stack([table.track[rows], lane[rows]], axis=1)
            distinct, numbers = np.unique(pairs, axis=0, return_inverse=True)
            for pair in map(tuple, distinct.tolist()):
                if pair not in further:
                    further[pair] = self._further_track(pair[0])
            tracks = [further[pair] for pair in map(tuple, distinct.tolist())]
            table.track[rows] = np.array(tracks, np.uint32)[numbers.reshape(-1)]

    def _further_track(self, track: int) -> int:
        original = self.tracks[track]
        parent = track if original.kind == "thread" else original.parent
        return self.add_track(original.name, parent)


class HostTrace(Trace):
    """The part of a trace that is on one host, with the positions and the times of the whole."""

    def __init__(self, whole: Trace, host: str) -> None:
        super().__init__()
        own = [position for position, track in whole.shown.items() if whole.host_of(track) == host]
        self.tracks = [whole.tracks[position] for position in own]
        self.names, self.argument_names = whole.names, whole.argument_names
        self.argument_texts = whole.argument_texts
        self.tables = [each.rows(np.isin(each.track, own)) for each in whole.tables]
        self.counters = [each for each in whole.counters if each.track in own]
        self._positions, self._first_time_ns = own, whole.first_time_ns

    @property
    def shown(self) -> dict[int, Track]:
        """The tracks by their positions in the whole."""
        return dict(zip(self._positions, self.tracks, strict=True))

    @property
    def first_time_ns(self) -> int:
        """That of the whole."""
        return self._first_time_ns


def times_of(table: pa.Table) -> np.ndarray:
    """Return the times of rows as int64, clipped to 36 years in case rows are damaged."""
    clipped: np.ndarray = np.clip(plain(table["time"]), -_LIMIT_NS, _LIMIT_NS)
    return clipped


def mapped(keys: np.ndarray, values: dict[int, int], absent: int = -1) -> np.ndarray:
    """Return the value of each key."""
    distinct, rows = np.unique(keys, return_inverse=True)
    found = [values.get(key, absent) for key in distinct.tolist()]
    return np.array(found, np.int64)[rows.reshape(-1)]


def present(values: np.ndarray, is_there: np.ndarray | None = None) -> np.ndarray:
    """Return the values of an argument; -1 for 0, or where ``is_there`` is false."""
    return np.where(values > 0 if is_there is None else is_there, values.astype(np.int64), -1)
