"""The times in which the host was blocked, as columns of the table ``host_waits``."""

import re
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz.analysis.calls import call_kinds
from gpuviz.analysis.launches import calls_of, durations
from gpuviz.data.arrays import numbers
from gpuviz.data.codes import CallKind
from gpuviz.data.columns import codes, plain
from gpuviz.data.derived import DICTIONARIES as WORDS
from gpuviz.data.first_rows import first_rows
from gpuviz.data.strings import are_named
from gpuviz.data.tables import DICTIONARIES, Tables

_ACTIVITY_KINDS = DICTIONARIES["activities", "kind"]
_SYNCHRONIZATION_KINDS = DICTIONARIES["synchronizations", "kind"]
_WAIT_KINDS = WORDS["host_waits", "kind"]
_LIMIT = 2**60


def host_waits(tables: Tables) -> dict[str, Any]:
    """Return the times in which the host was blocked: waits, and blocking calls without a wait.

    Queries are excluded. If calls are recorded, a wait without a call was a query: waiting calls
    are always recorded, queries only if all calls are.
    """
    table, calls_table = tables["synchronizations"], tables["api_calls"]
    waits = codes(table["kind"], _SYNCHRONIZATION_KINDS) - _SYNCHRONIZATION_KINDS.index(
        _WAIT_KINDS[0]
    )
    calls = calls_of(tables, plain(table["correlation"]))
    kinds_of_calls = call_kinds(tables)
    queries = np.isin(calls, np.flatnonzero(kinds_of_calls == CallKind.QUERY))
    if len(kinds_of_calls):
        queries |= calls < 0
    rows = np.flatnonzero((waits >= 0) & ~queries)
    blocking = _blocking_calls(tables, kinds_of_calls)
    alone = blocking[np.isin(blocking, calls[rows], invert=True)]
    kinds = np.concatenate([waits[rows], _kinds_alone(tables, alone, kinds_of_calls[alone])])
    call = np.concatenate([calls[rows], alone])
    time = np.concatenate([_times(table, rows), _times(calls_table, alone)])
    length = np.concatenate([durations(table)[rows], durations(calls_table)[alone]])
    copies = _first_copies(tables, call)
    is_copy = kinds >= _WAIT_KINDS.index("memcpy")
    of_copy = is_copy & (copies >= 0)
    waiting = length.copy()
    began = _times(tables["activities"], copies[of_copy])
    waiting[of_copy] = np.clip(began - time[of_copy], 0, length[of_copy])
    unknown = is_copy & (copies < 0)
    return {
        "time": time,
        "end": time + length,
        "kind": kinds,
        "name": _at(calls_table, "name", call),
        "call": call,
        "synchronization": np.concatenate([rows, np.full(len(alone), -1)]),
        "thread": _at(calls_table, "thread", call),
        "stack": _at(calls_table, "stack", call),
        "device": _of_wait_or_copy(tables, "device", rows, copies, -1),
        "stream": _of_wait_or_copy(tables, "stream", rows, copies, 0),
        "waiting_ns": numbers(waiting, pa.int64(), unknown=unknown),
        "transfer_ns": numbers(length - waiting, pa.int64(), unknown=unknown),
    }


def _blocking_calls(tables: Tables, kinds: np.ndarray) -> np.ndarray:
    """Return the rows of blocking calls; of calls with the same correlation id, the first."""
    blocking = (CallKind.SYNCHRONIZE, CallKind.MEMCPY, CallKind.PAGEABLE_MEMCPY)
    rows = np.flatnonzero(np.isin(kinds, blocking))
    correlations = plain(tables["api_calls"]["correlation"])[rows]
    alone: np.ndarray = rows[(calls_of(tables, correlations) == rows) | (correlations == 0)]
    return alone


def _kinds_alone(
    tables: Tables,
    calls: np.ndarray,
    kinds: np.ndarray,
) -> np.ndarray:
    """Return the kind of wait of each call; for synchronizing calls, from their names."""
    found = np.full(len(calls), _WAIT_KINDS.index("context_synchronize"))
    names = _at(tables["api_calls"], "name", calls)
    for word, kind in (("Event", "event_synchronize"), ("Stream", "stream_synchronize")):
        found[are_named(tables, names, re.compile(word).search)] = _WAIT_KINDS.index(kind)
    found[kinds == CallKind.MEMCPY] = _WAIT_KINDS.index("memcpy")
    found[kinds == CallKind.PAGEABLE_MEMCPY] = _WAIT_KINDS.index("pageable_memcpy")
    return found


def _first_copies(tables: Tables, calls: np.ndarray) -> np.ndarray:
    """Return the row of the first copy of each call; -1 if unknown."""
    activities = tables["activities"]
    kinds = codes(activities["kind"], _ACTIVITY_KINDS)
    copies = np.flatnonzero(kinds == _ACTIVITY_KINDS.index("memcpy"))
    copies = copies[np.argsort(plain(activities["time"])[copies], kind="stable")]
    wanted = _at(tables["api_calls"], "correlation", calls)
    found = first_rows(plain(activities["correlation"])[copies], wanted)
    rows: np.ndarray = np.append(copies, -1)[found]
    return rows


def _of_wait_or_copy(
    tables: Tables,
    column: str,
    rows: np.ndarray,
    copies: np.ndarray,
    unknown: int,
) -> np.ndarray:
    of_waits = plain(tables["synchronizations"][column])[rows]
    of_copies = _at(tables["activities"], column, copies[len(rows) :], unknown)
    return np.concatenate([of_waits, of_copies])


def _at(
    table: pa.Table,
    column: str,
    rows: np.ndarray,
    otherwise: int = 0,
) -> np.ndarray:
    """Return the values of a column in rows; ``otherwise`` where the row is -1."""
    values = plain(table[column])
    found = np.full(len(rows), otherwise, values.dtype)
    found[rows >= 0] = values[rows[rows >= 0]]
    return found


def _times(table: pa.Table, rows: np.ndarray) -> np.ndarray:
    """Return the times of rows, clipped so that damaged rows cannot cause an overflow."""
    times: np.ndarray = np.clip(plain(table["time"])[rows], -_LIMIT, _LIMIT)
    return times
