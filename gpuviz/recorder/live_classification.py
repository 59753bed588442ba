"""Incremental computation of derived tables during a recording."""

import math
import time
from collections.abc import Callable, Iterator, Mapping

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz.analysis.classification import derive, table_of
from gpuviz.analysis.row_facts import event_columns, names, times_of_accesses
from gpuviz.analysis.stream_origins import StreamOrigin
from gpuviz.data.arrays import with_columns
from gpuviz.data.columns import plain, rows_at
from gpuviz.data.derived import OF_ROWS, ROWS
from gpuviz.data.derived import schemas as derived_schemas
from gpuviz.data.memory_columns import memory_columns
from gpuviz.data.tables import Tables, schemas
from gpuviz.recorder.live_host_tables import LiveHostTables
from gpuviz.recorder.table_tail import FIRST_NS, TableTail, joined

# Each update classifies new activities and this many before them.
OVERLAP_ROWS = 1000
# Calls kept per activity: the calls that launched the activities come before them.
_CALLS_PER_ACTIVITY = 3
# Share of the reclassified activities that only provides context for the rest.
_FINAL = 0.5
# Largest share of the time spent on classification, and bounds of its interval in seconds.
MOST_OF_TIME = 0.003
SHORTEST_S, LONGEST_S = 0.9, 5.0
_TAILS = ("activities", "api_calls", "synchronizations")
# Tables of which all rows are kept, and those of which the rows since the last update are.
_SMALL = ("strings", "pools", "streams", "unrecorded_spans")
_NEWEST = ("memory_events", "launch_blocks")
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

    def __init__(self, has_all_rows: Callable[[], bool] = lambda: True) -> None:
        self._has_all_rows = has_all_rows
        self._tails: dict[str, TableTail] = {}
        self._others: dict[str, list[pa.RecordBatch]] = {}
        self._host = LiveHostTables()
        self._events = _core.EventFollower()
        self._free_levels = _core.FreeLevels()
        self._has_news = False
        self._due_s = 0.0
        self._origins: dict[int, StreamOrigin] = {}
        self._steps: Iterator[dict[str, pa.Table] | None] | None = None
        self._later: list[tuple[str, pa.RecordBatch]] = []
        self._began_s = 0.0
        self.from_ns = FIRST_NS
        self.cpu_s = 0.0

    def take(self, table: str, batch: pa.RecordBatch) -> None:
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

    def restart(self, tables: Tables) -> dict[str, pa.Table]:
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
        self._tails = {name: TableTail(known[name]) for name in _TAILS}
        self._host = LiveHostTables()
        self._host.take_all(tables)
        self._has_news = False
        self.from_ns = FIRST_NS
        of_events = {"free_levels": table_of("free_levels", free_levels)}
        derived = self._numbered(self._classified(tables, of_events))
        self._finish()
        return self._split(derived)

    def _classified(self, tables: Tables, known: Tables) -> dict[str, pa.Table]:
        host = LiveHostTables()
        host.take_all(tables)
        derived = {
            name: known[name] if name in known else derive(tables, name)
            for name in derived_schemas()
        }
        return derived | host.work(tables, derived["idle_gaps"])

    def whole(self, tables: Tables) -> dict[str, pa.Table]:
        """Return the derived tables of all rows; no row spans `from_ns`."""
        return self._split(self._numbered(self._classified(tables, {})))

    @property
    def is_updating(self) -> bool:
        """Whether an update has begun that is not complete."""
        return self._steps is not None

    def is_due(self) -> bool:
        """Return whether `advance` should be called now; less often if that takes long."""
        return self.is_updating or (self._has_news and time.monotonic() >= self._due_s)

    def update(self) -> dict[str, pa.Table]:
        """Complete an update, and return what `advance` returns."""
        return self.advance() or {}

    def advance(self, until_s: float = math.inf) -> dict[str, pa.Table] | None:
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

    def _update(self) -> Iterator[dict[str, pa.Table] | None]:
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

    def _origins_of(self, rows: Tables) -> Mapping[int, StreamOrigin]:
        """Return where the streams come from, also of those whose calls are no longer kept."""
        ids = plain(rows["streams"]["id"])
        new = rows["streams"].filter(~np.isin(ids, np.array([*self._origins], np.uint32)))
        self._origins |= self._host.origins({**rows, "streams": new})
        return self._origins

    def _of_events(self, rows: Tables) -> dict[str, pa.Table]:
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
        self, derived: Tables, firsts: Mapping[str, int] | None = None
    ) -> dict[str, pa.Table]:
        """Return derived tables with row numbers of whole tables; -1 if unknown."""
        known = dict.fromkeys(_TAILS, 0) if firsts is None else firsts
        known = known if self._has_all_rows() else {}
        return {
            name: _renumbered(name, table, known)
            for name, table in derived.items()
            if known or name != "host_work"
        }

    def _rows(self) -> dict[str, pa.Table]:
        known = schemas()
        tables = {name: tail.table(known[name]) for name, tail in self._tails.items()}
        others = {name: joined(batches, known[name]) for name, batches in self._others.items()}
        return tables | others

    def _is_new(self, name: str, table: pa.Table) -> np.ndarray:
        """Return a mask of the waits whose rows are new since the last update."""
        if name == "stream_waits":
            return plain(table["wait"]) >= self._tails["synchronizations"].known
        if name == "peer_copies":
            return plain(table["activity"]) >= self._tails["activities"].known
        waits, calls = plain(table["synchronization"]), plain(table["call"])
        is_new: np.ndarray = np.where(
            waits >= 0,
            waits >= self._tails["synchronizations"].known,
            calls >= self._tails["api_calls"].known,
        )
        return is_new

    def _finish(self) -> None:
        """Keep the rows that the next update needs, and advance `from_ns`."""
        self._host.trim(OVERLAP_ROWS)
        for name, tail in self._tails.items():
            tail.trim(OVERLAP_ROWS * (_CALLS_PER_ACTIVITY if name == "api_calls" else 1))
        ended_ns = max(tail.ended_ns for tail in self._tails.values())
        if ended_ns > FIRST_NS:
            activities = self._tails["activities"].table(schemas()["activities"])
            begins = plain(activities["time"])
            middle = int(begins[int(_FINAL * (len(begins) - 1))]) if len(begins) else FIRST_NS
            self.from_ns = max(self.from_ns, middle, ended_ns)

    def _split(self, derived: dict[str, pa.Table]) -> dict[str, pa.Table]:
        waits = derived["host_waits"]
        # By time, so that rows before `from_ns` keep their numbers.
        order = plain(waits["time"]).argsort(kind="stable")
        split: dict[str, pa.Table] = {
            name: _split(derived[name], self.from_ns)
            for name in ("idle_gaps", "host_work")
            if name in derived
        }
        return {**derived, **split, "host_waits": rows_at(waits, order)}


def _renumbered(name: str, table: pa.Table, firsts: Mapping[str, int]) -> pa.Table:
    """Return a derived table with row numbers of whole tables; -1 if unknown."""
    for of, column, target in (*ROWS, ("host_work", "activity", "activities")):
        if of != name:
            continue
        rows = plain(table[column])
        first = firsts.get(target)
        numbers = np.full_like(rows, -1) if first is None else np.where(rows < 0, -1, rows + first)
        table = with_columns(table, **{column: numbers})
    return table


def _clipped(gaps: pa.Table, from_ns: int) -> pa.Table:
    """Return the idle gaps from a time on."""
    later = gaps.filter(plain(gaps["end"]) > from_ns)
    return with_columns(later, time=np.maximum(plain(later["time"]), from_ns))


def _split(gaps: pa.Table, at_ns: int) -> pa.Table:
    """Split the idle gaps that span a time, keeping the order by lane and time."""
    starts, ends = plain(gaps["time"]), plain(gaps["end"])
    across = (starts < at_ns) & (at_ns < ends)
    if not across.any():
        return gaps
    earlier = with_columns(gaps, end=np.where(across, at_ns, ends))
    rows = np.flatnonzero(across)
    later = with_columns(gaps.take(rows), time=np.full(len(rows), at_ns))
    order = np.argsort(np.concatenate([np.arange(len(starts)), rows]), kind="stable")
    return pa.concat_tables([earlier, later]).unify_dictionaries().take(order)
