"""Synthetic recordings of millions of events."""

import numpy as np
import pyarrow as pa

from gpuviz.data.manifest import Manifest
from gpuviz.data.stream_handle import stream_row
from gpuviz.data.tables import ACTIONS, DICTIONARIES, IMPLIED, schemas
from gpuviz.recording import Recording

STREAMS = 8
SLOTS = 4096
SLOT_BYTES = 1 << 17
ADDRESS = 0x7F00_0000_0000
LENGTH_NS = 60_000_000_000


def coded(values: np.ndarray, names: tuple[str, ...]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(values.astype(np.int8)), pa.array(names))


def table(name: str, columns: dict[str, object], rows: int) -> pa.Table:
    """Return a table; missing columns are 0."""
    schema = pa.schema([field for field in schemas()[name] if (name, field.name) not in IMPLIED])
    nothing = np.zeros(rows, np.int64)
    return pa.table(
        [
            columns[field.name]
            if isinstance(columns.get(field.name), pa.Array)
            else coded(nothing, DICTIONARIES[name, field.name])
            if pa.types.is_dictionary(field.type)
            else pa.array(np.asarray(columns.get(field.name, nothing)), field.type)
            for field in schema
        ],
        schema=schema,
    )


def memory_events(generator: np.random.Generator, events: int) -> pa.Table:
    """Return a segment, and then alternating allocations and frees in its slots."""
    slot = generator.integers(0, SLOTS, events)
    order = np.argsort(slot, kind="stable")
    ranks = np.empty(events, np.int64)
    starts = np.concatenate([[0], np.cumsum(np.bincount(slot, minlength=SLOTS))[:-1]])
    ranks[order] = np.arange(events) - starts[slot[order]]
    action = np.where(ranks % 2 == 0, ACTIONS.index("alloc"), ACTIONS.index("free_completed"))
    size = 512 * (1 + slot % 255)
    first = {"action": ACTIONS.index("segment_alloc"), "size": SLOTS * SLOT_BYTES}
    columns = {
        "time": np.sort(generator.integers(0, LENGTH_NS, events)),
        "address": ADDRESS + slot * SLOT_BYTES,
        "size": size,
        "requested_size": size - 100,
        "action": action,
    }
    start = {"time": 0, "address": ADDRESS, "requested_size": 0} | first
    whole = {name: np.concatenate([[start[name]], values]) for name, values in columns.items()}
    count = events + 1
    whole |= {"action": coded(whole["action"], ACTIONS), "stream": np.ones(count)}
    return table("memory_events", whole | {"pool": np.ones(count)}, count)


def activities(generator: np.random.Generator, count: int) -> pa.Table:
    """Return consecutive activities on each of the streams."""
    begins = np.sort(generator.integers(0, LENGTH_NS, (STREAMS, count // STREAMS)), axis=1)
    ends = np.concatenate([begins[:, 1:], np.full((STREAMS, 1), LENGTH_NS)], axis=1)
    ends = begins + ((ends - begins) * generator.random(begins.shape)).astype(np.int64)
    order = np.argsort(begins.ravel())
    columns = {
        "time": begins.ravel()[order],
        "end": ends.ravel()[order],
        "stream": np.repeat(np.arange(1, STREAMS + 1), count // STREAMS)[order],
        "correlation": np.arange(1, count + 1),
        "name": np.ones(count),
        "kind": coded(generator.integers(0, 3, count), DICTIONARIES["activities", "kind"]),
    }
    return table("activities", columns, count)


def recorded(events: int, count: int) -> Recording:
    """Return a recording with these numbers of memory events and activities."""
    generator = np.random.default_rng(1)
    known = schemas()
    rows = {
        "devices": [{"id": 0, "name": "GPU", "total_memory": 80 << 30, "kind": "simulated"}],
        "streams": [stream_row(number, 0, number << 12) for number in range(1, STREAMS + 1)],
        "pools": [{"id": 1, "owner": 0, "segment_type": "large"}],
        "strings": [{"id": 1, "text": "kernel"}],
    }
    tables = {name: pa.Table.from_pylist(each, schema=known[name]) for name, each in rows.items()}
    tables |= {
        "memory_events": memory_events(generator, events),
        "activities": activities(generator, count),
    }
    return Recording(tables, Manifest(simulated=True, duration_ns=LENGTH_NS, initial_events=1))
