"""Ids of several recordings in one: numbers shifted apart, and rows of equal content joined."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from gpuviz.analysis.pools import TORCH_OWNER, WITHOUT_SEGMENTS
from gpuviz.data.columns import distinct, plain
from gpuviz.data.tables import Tables

_MOST = 2**32 - 1
# Ids up to this many are looked up in an array indexed by id.
_DENSE = 1 << 24

# Columns of numbers that mean something in one process only; 0 means none.
SPACES = {
    "stream": (
        *(("streams", "id"), ("memory_events", "stream"), ("activities", "stream")),
        *(("synchronizations", "stream"), ("graph_calls", "stream")),
        *(("memory_operations", "stream"), ("collectives", "stream"), ("api_calls", "stream")),
    ),
    "correlation": (
        *(("activities", "correlation"), ("api_calls", "correlation")),
        *(("synchronizations", "correlation"), ("launch_blocks", "correlation")),
        *(("graph_calls", "correlation"), ("memory_operations", "correlation")),
        *(("overheads", "correlation"), ("host_accesses", "correlation")),
    ),
    "range": (
        *(("ranges", "id"), ("ranges", "parent"), ("memory_events", "range")),
        *(("host_memory_events", "range"), ("api_calls", "range"), ("collectives", "range")),
    ),
    "context": (("activities", "context"), ("synchronizations", "context")),
    "graph": (("activities", "graph"), ("graph_calls", "graph")),
    "capture": (("graph_calls", "capture"),),
    "event": (("synchronizations", "event"),),
    "event_sync_id": (("synchronizations", "event_sync_id"),),
    "captured_event": (("graph_calls", "event"),),
}
_WIDE = ("event_sync_id", "captured_event")


class Shifted:
    """Ids of one process in a space where those of other processes come before.

    Args:
        tables: The tables of the process.
        space: A name of ``SPACES``.
        first: The first free id.

    Attributes:
        next: The first free id after those of the process.
    """

    def __init__(self, tables: Tables, space: str, first: int) -> None:
        columns = [plain(tables[table][column]) for table, column in SPACES[space]]
        largest = max((int(column.max(initial=0)) for column in columns), default=0)
        self._shift = first - 1
        self._known: np.ndarray | None = None
        if largest + self._shift > (2**63 - 1 if space in _WIDE else _MOST):
            # Numbers with gaps, such as handles.
            known = distinct(np.concatenate([distinct(column) for column in columns]))
            self._known = known[known != 0]
            largest = len(self._known)
        self.next = first + largest

    def taken(self, ids: np.ndarray) -> np.ndarray:
        """Return the ids of the merged recording."""
        if self._known is None:
            if not self._shift:
                return ids
            return np.where(ids, ids + ids.dtype.type(self._shift), ids)
        places = np.searchsorted(self._known, ids) + self._shift + 1
        return np.where(ids, places.astype(ids.dtype), ids)


class Lookup:
    """Ids of a merged recording by those of one process; 0 stays 0."""

    def __init__(self, pairs: Iterable[tuple[int, int]]) -> None:
        ordered = sorted(pairs)
        self._old = np.array([old for old, _ in ordered], np.int64)
        self._new = np.array([new for _, new in ordered], np.int64)
        self._table: np.ndarray | None = None
        if ordered and self._old[-1] < _DENSE and self._old[0] >= 0:
            self._table = np.zeros(int(self._old[-1]) + 1, np.int64)
            self._table[self._old] = self._new

    def taken(self, ids: np.ndarray) -> np.ndarray:
        """Return the new ids; unknown ones become 0."""
        found: np.ndarray
        if self._table is not None:
            inside = np.minimum(ids, len(self._table) - 1)
            found = np.where(ids < len(self._table), self._table[inside], 0)
        elif len(self._old):
            places = np.minimum(np.searchsorted(self._old, ids), len(self._old) - 1)
            found = np.where(self._old[places] == ids, self._new[places], 0)
        else:
            found = np.zeros_like(ids)
        return found.astype(ids.dtype)


class Joined:
    """Rows of all processes by content, each kept once, with ids from 1."""

    def __init__(self) -> None:
        self._ids: dict[Hashable, int] = {}
        self.rows: list[dict[str, Any]] = []

    def add(self, rows: Iterable[dict[str, Any]]) -> Lookup:
        """Add rows with an ``id``, and return their ids in the merged recording."""
        pairs = []
        for row in rows:
            content = {name: value for name, value in row.items() if name != "id"}
            key = tuple(map(_hashable, content.values()))
            new = self._ids.setdefault(key, len(self._ids) + 1)
            if new > len(self.rows):
                self.rows.append({"id": new, **content})
            pairs.append((row["id"], new))
        return Lookup(pairs)


def _hashable(value: Any) -> Hashable:
    return tuple(value) if isinstance(value, list) else value


class FreeIds:
    """Ids from 1, each taken once.

    Args:
        most: The highest id.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        # From a taken id to a later one, of which all between are taken.
        self._later: dict[int, int] = {}

    def take(self, wanted: int) -> int:
        """Return the next free id from one on; after the highest comes 1."""
        passed = []
        found = wanted
        while found in self._later:
            passed.append(found)
            found = self._later[found]
        for each in (*passed, found):
            self._later[each] = found % self._most + 1
        return found


class Pools:
    """Pools of all processes; the default pools are shared, private ones are shifted apart."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[str, Any]] = {}
        self._next = 1

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of ``pools``, by id."""
        return [self._rows[number] for number in sorted(self._rows)]

    def add(self, rows: Iterable[dict[str, Any]], used: Iterable[int]) -> Lookup:
        """Add the rows of a process and the pools that its events use; return their ids."""
        known = {row["id"]: row for row in rows}
        of_owner: dict[int, list[dict[str, Any]]] = {}
        for row in known.values():
            of_owner.setdefault(row["id"] // 2, []).append(row)
        ids = {*known, *used}
        owners = {row["owner"] for row in known.values()}
        numbers = {}
        for old in sorted({each // 2 for each in ids} | owners):
            # torch's own pools stay those of torch, and so does what is RMM's or JAX's.
            default = TORCH_OWNER if old >= TORCH_OWNER else 0
            is_shared = old in WITHOUT_SEGMENTS or (
                old == default
                and all(self._rows.get(row["id"], row) == row for row in of_owner.get(old, ()))
            )
            numbers[old] = old if is_shared else default + self._next
            self._next += not is_shared
        new = {old: 2 * numbers[old // 2] + old % 2 for old in ids}
        for old, row in known.items():
            # Memory of a default pool is not that of a private one, whatever its number.
            owner = row["owner"] and numbers[row["owner"]]
            self._rows[new[old]] = {**row, "id": new[old], "owner": owner}
        return Lookup(new.items())
