"""Incremental computation of derived tables during a recording."""

import math
import time
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz.analysis.classification import derive, table_of
from gpuviz.analysis.host_work import newest_host_work
from gpuviz.analysis.row_facts import event_columns, names, times_of_accesses
from gpuviz.analysis.sampled_work import sampled_work
from gpuviz.analysis.stream_origins import calls_of_streams, stream_origins
from gpuviz.data.arrays import batch_of, empty
from gpuviz.data.columns import codes, plain, rows_at
from gpuviz.data.derived import OF_ROWS, ROWS
from gpuviz.data.derived import schemas as derived_schemas
from gpuviz.data.memory_columns import memory_columns
from gpuviz.data.tables import DICTIONARIES, schemas

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from numpy.typing import NDArray

    from gpuviz.analysis.stream_origins import StreamOrigin

    Tables = Mapping[str, pa.Table]

# Each update classifies new activities and this many before them.
OVERLAP_ROWS = 1000
# Calls kept per activity: the calls that launched the activities come before them.
_CALLS_PER_ACTIVITY = 3
# Share of the reclassified activities that only provides context for the rest.
_FINAL = 0.5
# Largest share of the time spent on classification, and bounds of its interval in seconds.
MOST_OF_TIME = 0.003
SHORTEST_S, LONGEST_S = 0.9, 5.0
_FIRST_NS = -(2**62)
_TAILS = ("activities", "api_calls", "synchronizations")
# Tables of which all rows are kept, and those of which the rows since the last update are.
_SMALL = ("strings", "pools", "streams", "unrecorded_spans")
_NEWEST = ("memory_events", "launch_blocks")
# The ranges in which the host prepares, and those outside of which nobody asked for work.
_OF_HOST = ("compile", "load", "cell")
_RANGES = DICTIONARIES["ranges", "kind"]
_TIMES = {"host_waits": "time", "stream_waits": "recorded_time", "peer_copies": "time"}


class LiveClassification:
    """Classifies the newest rows repeatedly, at a bounded cost per update.

    Idle time before `from_ns` is final, even if a row that arrives later would have changed it.
    Waits that arrive later are still added. Unknown row numbers are -1; once the recording has
    discarded its oldest rows, all are.

    Args:
        has_all_rows: Returns whether the recording has kept all of its rows.

    Attributes:
        from_ns: Idle gaps before this time are final, and no row spans it; it only increases.
        cpu_s: CPU time of all updates.
    """

    def __init__(self, has_all_rows: "Callable[[], bool]" = lambda: True) -> None:
        self._has_all_rows = has_all_rows
        self._tails: dict[str, _Tail] = {}
        self._others: dict[str, list[pa.RecordBatch]] = {}
        self._host = _HostTables()
        self._events = _core.EventFollower()
        self._free_levels = _core.FreeLevels()
        self._has_news = False
        self._due_s = 0.0
        self._origins: dict[int, StreamOrigin] = {}
        self._steps: Iterator[dict[str, pa.Table] | None] | None = None
        self._later: list[tuple[str, pa.RecordBatch]] = []
        self._began_s = 0.0
        self.from_ns = _FIRST_NS
        self.cpu_s = 0.0

    def take(self, table: str, batch: "pa.RecordBatch") -> None:
        """Add rows of a table."""
        if self._steps is not None:
            self._later.append((table, batch))
            return
        if self._tails and self._host.take(table, batch):
            self._has_news = True
        if table in self._others:
            self._others[table].append(batch)
            self._has_news |= table != "strings"
        elif table in self._tails:
            self._tails[table].append(batch)
            self._has_news = True

    @property
    def has_begun(self) -> bool:
        """Whether `restart` has provided the rows so far."""
        return bool(self._tails)

    def forget(self) -> None:
        """Discard all rows until the next `restart`."""
        self._tails = {}
        self._has_news = False
        self._steps = None
        self._later.clear()

    def restart(self, tables: "Tables") -> "dict[str, pa.Table]":
        """Replace the known rows with all rows so far, and return what `whole` returns."""
        # Takes a tenth of a second; while a cell computes, a thread would need two.
        import pyarrow.compute  # noqa: F401

        known_schemas = schemas()
        needed = (*_TAILS, *_SMALL, *_NEWEST)
        known = {name: tables.get(name, known_schemas[name].empty_table()) for name in needed}
        self._others = {name: list(known[name].to_batches()) for name in _SMALL}
        self._others |= {name: [] for name in _NEWEST}
        self._events = _core.EventFollower()
        self._events.add(event_columns(known["memory_events"]))
        self._events.take_marks(is_whole=False)
        self._free_levels = _core.FreeLevels()
        free_levels = self._free_levels.add(memory_columns(known["memory_events"]))
        self._tails = {name: _Tail(known[name]) for name in _TAILS}
        self._host = _HostTables()
        self._host.take_all(tables)
        self._has_news = False
        self.from_ns = _FIRST_NS
        of_events = {"free_levels": table_of("free_levels", free_levels)}
        derived = self._numbered(self._classified(tables, of_events))
        self._finish()
        return self._split(derived)

    def _classified(self, tables: "Tables", known: "Tables") -> "dict[str, pa.Table]":
        host = _HostTables()
        host.take_all(tables)
        derived = {
            name: known[name] if name in known else derive(tables, name)
            for name in derived_schemas()
        }
        return derived | host.work(tables, derived["idle_gaps"])

    def whole(self, tables: "Tables") -> "dict[str, pa.Table]":
        """Return the derived tables of all rows; no row spans `from_ns`."""
        return self._split(self._numbered(self._classified(tables, {})))

    @property
    def is_updating(self) -> bool:
        """Whether an update has begun that is not complete."""
        return self._steps is not None

    def is_due(self) -> bool:
        """Return whether `advance` should be called now; less often if that takes long."""
        return self.is_updating or (self._has_news and time.monotonic() >= self._due_s)

    def update(self) -> "dict[str, pa.Table]":
        """Complete an update, and return what `advance` returns."""
        return self.advance() or {}

    def advance(self, until_s: float = math.inf) -> "dict[str, pa.Table] | None":
        """Begin or continue an update, which includes the rows up to its begin.

        Args:
            until_s: Interrupt it after the first step that ends at this time or later.

        Returns:
            None if it is not complete; else rows from the previous `from_ns` on, and waits that
            arrived too late.
        """
        began = time.thread_time()
        if self._steps is None:
            if not self._has_news:
                return {}
            self._steps = self._update()
            self._began_s = self.cpu_s
        found = None
        for found in self._steps:
            if found is not None or time.monotonic() >= until_s:
                break
        self.cpu_s += time.thread_time() - began
        if found is not None:
            took = self.cpu_s - self._began_s
            self._due_s = time.monotonic() + min(max(took / MOST_OF_TIME, SHORTEST_S), LONGEST_S)
            self._steps = None
            later, self._later = self._later, []
            for table, batch in later:
                self.take(table, batch)
        return found

    def _update(self) -> "Iterator[dict[str, pa.Table] | None]":
        """Update in steps; yield None after each but the last, then what `advance` returns."""
        self._has_news = False
        firsts = {name: tail.first for name, tail in self._tails.items()}
        rows = self._rows()
        yield None
        found = {}
        for name in derived_schemas():
            if name not in OF_ROWS:
                found[name] = derive(rows, name)
                yield None
        late = {name: self._is_new(name, found[name]) for name in _TIMES}
        found["idle_gaps"] = _clipped(found["idle_gaps"], self.from_ns)
        found |= self._host.work(rows, found["idle_gaps"], self.from_ns)
        yield None
        derived = self._numbered(found, firsts)
        new = {"idle_gaps": derived["idle_gaps"]}
        if "host_work" in derived:
            new["host_work"] = derived["host_work"]
        for name, column in _TIMES.items():
            times = plain(derived[name][column])
            new[name] = derived[name].filter((times >= self.from_ns) | (late[name] & (times > 0)))
        yield None
        new["names"] = table_of("names", names(rows, self._origins_of(rows)))
        if found["unseen_spans"].num_rows:
            new["unseen_spans"] = found["unseen_spans"]
        yield None
        new |= self._of_events(rows)
        new["sampled_work"] = self._host.newest_work()
        yield None
        self._finish()
        yield self._split(new)

    def _origins_of(self, rows: "Tables") -> "Mapping[int, StreamOrigin]":
        """Return where the streams come from, also of those whose calls are no longer kept."""
        ids = plain(rows["streams"]["id"])
        new = rows["streams"].filter(~np.isin(ids, np.array([*self._origins], np.uint32)))
        self._origins |= self._host.origins({**rows, "streams": new})
        return self._origins

    def _of_events(self, rows: "Tables") -> "dict[str, pa.Table]":
        """Return what the new memory events and the new accesses add to the derived tables."""
        self._events.add(event_columns(rows["memory_events"]))
        levels = self._free_levels.add(memory_columns(rows["memory_events"]))
        blocks = self._events.blocks(plain(rows["launch_blocks"]["block"]), times_of_accesses(rows))
        marks = self._events.take_marks(is_whole=False)
        for name in _NEWEST:
            self._others[name].clear()
        if not self._has_all_rows():
            for columns in (blocks, marks, levels):
                columns["event"] = np.full_like(columns["event"], -1)
        return {
            "accessed_blocks": table_of("accessed_blocks", blocks),
            "memory_marks": table_of("memory_marks", marks),
            "free_levels": table_of("free_levels", levels),
        }

    def _numbered(
        self, derived: "Tables", firsts: "Mapping[str, int] | None" = None
    ) -> "dict[str, pa.Table]":
        """Return derived tables with row numbers of whole tables; -1 if unknown."""
        known = dict.fromkeys(_TAILS, 0) if firsts is None else firsts
        known = known if self._has_all_rows() else {}
        return {
            name: _renumbered(name, table, known)
            for name, table in derived.items()
            if known or name != "host_work"
        }

    def _rows(self) -> "dict[str, pa.Table]":
        known = schemas()
        tables = {name: tail.table(known[name]) for name, tail in self._tails.items()}
        others = {name: _joined(batches, known[name]) for name, batches in self._others.items()}
        return tables | others

    def _is_new(self, name: str, table: "pa.Table") -> "NDArray[Any]":
        """Return a mask of the waits whose rows are new since the last update."""
        if name == "stream_waits":
            return plain(table["wait"]) >= self._tails["synchronizations"].known
        if name == "peer_copies":
            return plain(table["activity"]) >= self._tails["activities"].known
        waits, calls = plain(table["synchronization"]), plain(table["call"])
        is_new: NDArray[Any] = np.where(
            waits >= 0,
            waits >= self._tails["synchronizations"].known,
            calls >= self._tails["api_calls"].known,
        )
        return is_new

    def _finish(self) -> None:
        """Keep the rows that the next update needs, and advance `from_ns`."""
        self._host.trim()
        for name, tail in self._tails.items():
            tail.trim(OVERLAP_ROWS * (_CALLS_PER_ACTIVITY if name == "api_calls" else 1))
        ended_ns = max(tail.ended_ns for tail in self._tails.values())
        if ended_ns > _FIRST_NS:
            activities = self._tails["activities"].table(schemas()["activities"])
            begins = plain(activities["time"])
            middle = int(begins[int(_FINAL * (len(begins) - 1))]) if len(begins) else _FIRST_NS
            self.from_ns = max(self.from_ns, middle, ended_ns)

    def _split(self, derived: "dict[str, pa.Table]") -> "dict[str, pa.Table]":
        waits = derived["host_waits"]
        # By time, so that rows before `from_ns` keep their numbers.
        order = plain(waits["time"]).argsort(kind="stable")
        split: dict[str, pa.Table] = {
            name: _split(derived[name], self.from_ns)
            for name in ("idle_gaps", "host_work")
            if name in derived
        }
        return {**derived, **split, "host_waits": rows_at(waits, order)}


class _HostTables:
    """What says what the host did: the newest samples, and what they refer to."""

    def __init__(self) -> None:
        self._samples = _Tail(empty(schemas()["host_samples"]))
        self._named: dict[str, list[pa.RecordBatch]] = {
            name: [] for name in ("stacks", "frames", "threads")
        }
        self._ranges: dict[int, dict[str, Any]] = {}
        self._is_sampled = False

    def take(self, table: str, batch: "pa.RecordBatch") -> bool:
        """Add rows of a table; return whether they say what the host did."""
        if table == "host_samples":
            self._samples.append(batch)
            self._is_sampled = True
            return True
        if table in self._named:
            self._named[table].append(batch)
        elif table == "ranges":
            kinds = [_RANGES.index(kind) for kind in _OF_HOST]
            ranges = pa.Table.from_batches([batch])
            chosen = np.flatnonzero(np.isin(codes(ranges["kind"], _RANGES), kinds))
            rows = ranges.take(chosen).to_pylist() if len(chosen) else []
            self._ranges |= {row["id"]: row for row in rows}
        return False

    def take_all(self, tables: "Tables") -> None:
        """Add all rows of a recording so far."""
        for name in ("host_samples", "stacks", "frames", "threads", "ranges"):
            for batch in tables[name].to_batches() if name in tables else ():
                self.take(name, batch)

    def origins(self, rows: "Tables") -> "dict[int, StreamOrigin]":
        """Return where the streams come from that known calls made."""
        of_calls = calls_of_streams(rows)
        stacks = self._with_ids("stacks", np.array([*of_calls.values()], np.uint32))
        frames = self._with_ids("frames", _frames_of(stacks))
        return stream_origins({**rows, "stacks": stacks, "frames": frames})

    def trim(self) -> None:
        """Keep the rows that the next update needs."""
        self._samples.trim(OVERLAP_ROWS)

    def work(
        self, rows: "Tables", gaps: "pa.Table", from_ns: int = _FIRST_NS
    ) -> "dict[str, pa.Table]":
        """Return what the host did in some idle gaps after a time, as the table ``host_work``.

        Nothing is returned if no thread was sampled.
        """
        if not self._is_sampled:
            return {}
        samples = self._samples.table(schemas()["host_samples"])
        samples = rows_at(samples, np.flatnonzero(plain(samples["end"]) > from_ns))
        ranges = pa.Table.from_batches([batch_of([*self._ranges.values()], schemas()["ranges"])])
        tables = self._named_by(samples) | {"ranges": ranges}
        return {"host_work": newest_host_work({**rows, **tables}, gaps)}

    def newest_work(self) -> "pa.Table":
        """Return the table ``sampled_work`` of the rows since the last update."""
        samples = self._samples.table(schemas()["host_samples"]).slice(self._samples.known)
        return table_of("sampled_work", sampled_work(self._named_by(samples)))

    def _named_by(self, samples: "pa.Table") -> "dict[str, pa.Table]":
        """Return samples with what they refer to."""
        stacks = self._with_ids("stacks", plain(samples["stack"]))
        return {
            "host_samples": samples,
            "stacks": stacks,
            "frames": self._with_ids("frames", _frames_of(stacks)),
            "threads": _joined(self._named["threads"], schemas()["threads"]),
        }

    def _with_ids(self, table: str, ids: "NDArray[Any]") -> "pa.Table":
        known = _joined(self._named[table], schemas()[table])
        self._named[table] = known.to_batches()
        return rows_at(known, np.flatnonzero(np.isin(plain(known["id"]), ids)))


def _frames_of(stacks: "pa.Table") -> "NDArray[Any]":
    frames = stacks["frames"].combine_chunks().flatten().to_numpy()
    others = (plain(stacks[name]) for name in ("user_frame", "forward_frame"))
    return np.concatenate([frames, *others])


class _Tail:
    """The newest batches of a table.

    Attributes:
        first: Row number of the first row.
        known: Number of rows at the last `trim`.
        ended_ns: Latest end of the rows before these.
    """

    def __init__(self, table: "pa.Table") -> None:
        self._batches = deque(table.to_batches())
        self._rows = table.num_rows
        self.first = 0
        self.known = 0
        self.ended_ns = _FIRST_NS

    def append(self, batch: "pa.RecordBatch") -> None:
        self._batches.append(batch)
        self._rows += batch.num_rows

    def trim(self, most_rows: int) -> None:
        while self._rows > most_rows:
            oldest = self._batches.popleft()
            dropped = min(oldest.num_rows, self._rows - most_rows)
            if dropped < oldest.num_rows:
                self._batches.appendleft(oldest.slice(dropped))
            self._rows -= dropped
            self.first += dropped
            ends = oldest.slice(0, dropped)["end"].to_numpy()
            self.ended_ns = max(self.ended_ns, int(ends.max(initial=_FIRST_NS)))
        self.known = self._rows

    def table(self, schema: "pa.Schema") -> "pa.Table":
        table = _joined(self._batches, schema)
        self._batches = deque(table.to_batches())
        return table


def _joined(batches: "Iterable[pa.RecordBatch]", schema: "pa.Schema") -> "pa.Table":
    parts = [batch if batch.schema.equals(schema) else batch.cast(schema) for batch in batches]
    if not parts:
        return empty(schema)
    table = pa.Table.from_batches(parts, schema)
    return table if len(parts) == 1 else table.unify_dictionaries().combine_chunks()


def _renumbered(name: str, table: "pa.Table", firsts: "Mapping[str, int]") -> "pa.Table":
    """Return a derived table with row numbers of whole tables; -1 if unknown."""
    for of, column, target in (*ROWS, ("host_work", "activity", "activities")):
        if of != name:
            continue
        rows = plain(table[column])
        first = firsts.get(target)
        numbers = np.full_like(rows, -1) if first is None else np.where(rows < 0, -1, rows + first)
        place = table.schema.get_field_index(column)
        field = table.schema.field(place)
        table = table.set_column(place, field, pa.array(numbers, field.type))
    return table


def _clipped(gaps: "pa.Table", from_ns: int) -> "pa.Table":
    """Return the idle gaps from a time on."""
    later = gaps.filter(plain(gaps["end"]) > from_ns)
    return _with_times(later, time=np.maximum(plain(later["time"]), from_ns))


def _split(gaps: "pa.Table", at_ns: int) -> "pa.Table":
    """Split the idle gaps that span a time, keeping the order by lane and time."""
    starts, ends = plain(gaps["time"]), plain(gaps["end"])
    across = (starts < at_ns) & (at_ns < ends)
    if not across.any():
        return gaps
    earlier = _with_times(gaps, end=np.where(across, at_ns, ends))
    rows = np.flatnonzero(across)
    later = _with_times(gaps.take(rows), time=np.full(len(rows), at_ns))
    order = np.argsort(np.concatenate([np.arange(len(starts)), rows]), kind="stable")
    return pa.concat_tables([earlier, later]).unify_dictionaries().take(order)


def _with_times(table: "pa.Table", **columns: "NDArray[Any]") -> "pa.Table":
    for name, values in columns.items():
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), pa.array(values, pa.int64()))
    return table
