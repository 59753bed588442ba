"""Facts about single rows: what they are called, which call or block they belong to, marks."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz.analysis.kernels import short_name
from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.sampled_work import sampled_work
from gpuviz.analysis.stream_origins import StreamOrigin, names_of_streams, stream_origins
from gpuviz.data.codes import ACTIVITY_KINDS, NAMED_KINDS
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.memory_columns import memory_columns
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES, Tables

_EVENTS = ("time", "address", "size", "requested_size", "device")


def names(tables: Tables, known: Mapping[int, StreamOrigin] | None = None) -> dict[str, Any]:
    """Return the columns of ``names``.

    Args:
        tables: The tables.
        known: Where streams come from; found in the tables by default.
    """
    origins = stream_origins(tables) if known is None else known
    found = [
        *(("kernel", *each) for each in _kernel_names(tables)),
        *(
            ("pool", row.pop("id"), _core.pool_name(**row))
            for row in _rows(tables, "pools", ("id", "owner", "segment_type", "framework"))
        ),
        *(("stream", *each) for each in names_of_streams(tables["streams"], origins).items()),
    ]
    kinds, ids, shown = zip(*found, strict=True) if found else ((), (), ())
    return {"of": [NAMED_KINDS.index(kind) for kind in kinds], "id": list(ids), "name": shown}


def _rows(tables: Tables, name: str, columns: tuple[str, ...]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tables[name].select(list(columns)).to_pylist()
    return found


def _kernel_names(tables: Tables) -> Iterator[tuple[int, str]]:
    activities = tables["activities"]
    is_kernel = codes(activities["kind"], ACTIVITY_KINDS) == ACTIVITY_KINDS.index("kernel")
    ids = distinct(plain(activities["name"])[is_kernel])
    for number, text in zip(ids.tolist(), texts(tables, ids), strict=True):
        yield number, short_name(text) or "kernel"


def repeated_calls(tables: Tables) -> dict[str, np.ndarray]:
    """Return the columns of ``repeated_calls``."""
    known = plain(tables["api_calls"]["correlation"])
    if (known[1:] > known[:-1]).all():
        return {"call": np.zeros(0, np.int32)}
    first = first_rows(known, known)
    return {"call": np.flatnonzero((first >= 0) & (first != np.arange(len(known))))}


def accessed_blocks(tables: Tables) -> dict[str, np.ndarray]:
    """Return the columns of ``accessed_blocks``."""
    addresses = plain(tables["launch_blocks"]["block"])
    follower = _core.EventFollower(distinct(addresses))
    if addresses.size:
        follower.add(event_columns(tables["memory_events"]))
    return follower.blocks(addresses, times_of_accesses(tables))


def memory_marks(tables: Tables) -> dict[str, np.ndarray]:
    """Return the columns of ``memory_marks``."""
    follower = _core.EventFollower(np.zeros(0, np.uint64))
    follower.add(event_columns(tables["memory_events"]))
    return follower.take_marks(is_whole=True)


def free_levels(tables: Tables) -> dict[str, np.ndarray]:
    """Return the columns of ``free_levels``."""
    return _core.FreeLevels().add(memory_columns(tables["memory_events"]))


def event_columns(events: pa.Table) -> dict[str, np.ndarray]:
    """Return the columns of ``memory_events`` that the native core follows."""
    actions = codes(events["action"], DICTIONARIES["memory_events", "action"])
    return {name: plain(events[name]) for name in _EVENTS} | {"action": actions}


def times_of_accesses(tables: Tables) -> np.ndarray:
    """Return when the call of each row of ``launch_blocks`` began; before all if unknown."""
    calls = calls_of(tables, plain(tables["launch_blocks"]["correlation"]))
    times = np.append(plain(tables["api_calls"]["time"]), np.iinfo(np.int64).min)
    found: np.ndarray = times[calls]
    return found


# The columns of the tables in `gpuviz.data.derived.OF_ROWS`.
ROW_FACTS: dict[str, Callable[[Tables], Mapping[str, Any]]] = {
    "names": names,
    "repeated_calls": repeated_calls,
    "accessed_blocks": accessed_blocks,
    "memory_marks": memory_marks,
    "free_levels": free_levels,
    "sampled_work": sampled_work,
}
