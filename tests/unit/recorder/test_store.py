"""A recorder's store: bounded memory, and the same final state whatever was discarded."""

import errno
import os
from itertools import pairwise

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.data.arrays import batch_of
from gpuviz.data.manifest import Manifest
from gpuviz.data.tables import DICTIONARIES, schemas
from gpuviz.recorder.store import Store
from gpuviz.recording import Recording
from tests.examples import examples
from tests.unit.analysis.test_memory_state import any_events
from tests.unit.recording.from_events import one_line_stacks, rows_table


def fill(store, rows, size):
    """Append the rows in batches of a size, referenced tables first."""
    for name, table in one_line_stacks([row["stack"] for row in rows]).items():
        for batch in table.to_batches():
            store.append(name, batch)
    ends = [*range(0, len(rows), size), len(rows)]
    for first, last in pairwise(ends):
        store.append("memory_events", rows_table(rows[first:last]).to_batches()[0])
        store.flush()


def whole(rows):
    tables = {"memory_events": rows_table(rows), **one_line_stacks([r["stack"] for r in rows])}
    return Recording(tables, Manifest())


@examples(16)
@given(rows=any_events(), size=st.integers(1, 5), most=st.integers(1, 12))
def test_without_a_path_the_newest_events_and_the_state_before_them_are_kept(rows, size, most):
    store = Store(None, Manifest(), most)

    fill(store, rows, size)
    recording = store.so_far(Manifest())

    first = recording.manifest.initial_events
    times = recording.tables["memory_events"]["time"].to_pylist()[first:]
    assert len(times) <= max(most, size)
    assert times == [row["time"] for row in rows[len(rows) - len(times) :]]
    assert recording.dropped == len(rows) - len(times)
    assert recording.memory_snapshot() == whole(rows).memory_snapshot()


def program(count):
    """Return a segment, then blocks that replace each other."""
    rows = [{"time": 0, "action": "segment_alloc", "address": 0, "size": 4096, "stack": 1}]
    for n in range(1, count):
        action = ("alloc", "free_requested", "free_completed")[(n - 1) % 3]
        rows.append({"time": n, "action": action, "address": 512 * (n % 4), "size": 512})
        rows[-1] |= {"requested_size": 500, "stack": 1}
        if action != "alloc":
            rows[-1]["address"] = rows[-2]["address"]
    return rows


@pytest.mark.parametrize("most", [3, 10, 1000])
@pytest.mark.parametrize("room", [0, 1500, 3000, 6000])
def test_after_the_disk_is_full_memory_is_bounded_and_the_end_is_known(
    tmp_path, monkeypatch, most, room
):
    left = [room]
    write = os.write

    def write_while_there_is_room(descriptor, content):
        if left[0] < len(content):
            raise OSError(errno.ENOSPC, "No space left on device")
        left[0] -= len(content)
        return write(descriptor, content)

    monkeypatch.setattr(os, "write", write_while_there_is_room)
    store = Store(tmp_path / "run.gpuviz", Manifest(), most)
    rows = program(90)

    fill(store, rows, 5)
    recording = store.so_far(Manifest())

    first = recording.manifest.initial_events
    times = recording.tables["memory_events"]["time"].to_pylist()[first:]
    assert "No space left" in str(store.failure)
    assert times == [row["time"] for row in rows[len(rows) - len(times) :]]
    assert recording.dropped == len(rows) - len(times)
    assert (recording.dropped > 0) == (most < 1000)
    assert recording.memory_snapshot() == whole(rows).memory_snapshot()


def pinned_program(count):
    """Return pinned blocks that replace each other, the last of which wait for copies."""
    names = ("time", "action", "address", "size", "requested_size", "stack", "thread", "range")
    rows = []
    for n in range(count):
        address, free = 4096 * (n % 7), "free_requested" if n > count - 5 else "free_completed"
        for action in (
            "segment_alloc",
            "alloc",
            free,
            *(["segment_free"] if n < count - 4 else []),
        ):
            values = (len(rows) + 1, action, address, 4096, 4000, 0, 0, 0)
            rows.append(dict(zip(names, values, strict=True)))
    return rows


def pinned_table(rows):
    return pa.Table.from_pylist(rows, schema=schemas()["host_memory_events"])


@pytest.mark.parametrize("most", [3, 10, 1000])
@pytest.mark.parametrize("size", [1, 4])
def test_of_pinned_memory_the_newest_events_and_the_state_before_them_are_kept(most, size):
    store = Store(None, Manifest(), most)
    rows = pinned_program(30)

    for first in range(0, len(rows), size):
        store.append("host_memory_events", pinned_table(rows[first : first + size]).to_batches()[0])
    recording = store.so_far(Manifest())

    kept = recording.host_memory.events
    assert kept <= max(most, size)
    assert store.dropped_oldest_activities == len(rows) - kept
    assert store.dropped_oldest == 0
    whole = Recording({"host_memory_events": pinned_table(rows)}, Manifest())
    levels = whole.host_memory.memory_levels.to_pylist()
    assert recording.host_memory.memory_levels.to_pylist()[-kept:] == levels[-kept:]


def test_rows_whose_referents_were_lost_are_kept():
    store = Store(None, Manifest(), 10)
    row = dict.fromkeys(schemas()["activities"].names, 0)
    words = {name: words[0] for (of, name), words in DICTIONARIES.items() if of == "activities"}
    store.append("activities", batch_of([row | words | {"launch": 7}], schemas()["activities"]))

    recording = store.finish(Manifest())

    assert recording.tables["activities"]["launch"].to_pylist() == [0]
