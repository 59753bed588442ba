"""Peak, sites, fragmentation and initial events, against the snapshot or plain Python."""

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from gpuviz._core import MemoryState
from gpuviz.analysis.initial_events import initial_events
from gpuviz.data.manifest import Manifest
from gpuviz.data.memory_columns import memory_columns
from gpuviz.recording import Recording
from tests.examples import examples
from tests.unit.analysis.test_memory_state import any_events, consistent_events
from tests.unit.recording.from_events import rows_table
from tests.unit.recording.plain_memory import PlainMemory

EXAMPLES = examples(20)
LINES = 5


def recording_of(rows, **manifest):
    """Return a recording whose stack n has its user frame on line n % LINES, below a library."""
    ids = sorted({row["stack"] for row in rows} - {0})
    library = {"id": 1, "name": "wrap", "filename": "/x/site-packages/lib.py", "line": 1}
    own = [
        {"id": n + 2, "name": "step", "filename": "run.py", "line": n, "source": f"line {n}"}
        for n in range(LINES)
    ]
    defaults = {"cell": 0, "source": ""}
    kinds = recording_schemas()
    frames = pa.Table.from_pylist([defaults | f for f in (library, *own)], schema=kinds["frames"])
    stacks = pa.Table.from_pylist(
        [{"id": n, "frames": [1, n % LINES + 2]} for n in ids],
        schema=kinds["stacks"],
    )
    tables = {"memory_events": rows_table(rows), "stacks": stacks, "frames": frames}
    return Recording(tables, Manifest(**manifest))


def recording_schemas():
    from gpuviz.data.tables import schemas

    return schemas()


def accounts(rows):
    memories = defaultdict(PlainMemory)
    for row in rows:
        memories[row["device"]].apply(row)
    return memories


def live_blocks(rows, device=None):
    return [
        block
        for ordinal, memory in accounts(rows).items()
        if device in (None, ordinal)
        for block in memory.live
        if block.state == 1
    ]


def allocated(rows, device=None):
    return sum(block.end - block.start for block in live_blocks(rows, device))


def moments(rows, first, device):
    """Return the number of rows up to each time; events of several devices are ordered by time."""
    ordered = [*rows[:first], *sorted(rows[first:], key=lambda row: row["time"])]
    sums = [allocated(ordered[:end], device) for end in range(first, len(rows) + 1)]
    at = first + sums.index(max(sums))
    return ordered[:at], max(sums)


@EXAMPLES
@given(
    rows=any_events(),
    device=st.sampled_from([None, 0, 2]),
    first=st.integers(0, 10),
    by_device=st.booleans(),
)
def test_the_peak_is_the_first_moment_with_most_allocated_bytes(rows, device, first, by_device):
    first = min(first, len(rows))
    if by_device:
        rows[first:] = sorted(rows[first:], key=lambda row: row["device"])
    recording = recording_of(rows, initial_events=first)
    assume(device is None or device in recording.devices)
    until, most = moments(rows, first, device)

    peak = recording.peak(device)

    assert (peak.time_ns, peak.bytes) == (until[-1]["time"] if until[first:] else 0, most)
    assert peak.reserved_bytes == sum(
        memory.current()["reserved_bytes", "all"]
        for ordinal, memory in accounts(until).items()
        if device in (None, ordinal)
    )
    taken = recording.memory_snapshot("peak", device)
    assert sum(segment["allocated_size"] for segment in taken) == most


@EXAMPLES
@given(
    rows=consistent_events(),
    by=st.sampled_from(["stack", "line"]),
    at=st.one_of(st.sampled_from(["peak", "end", None]), st.integers(-1, 90)),
    device=st.sampled_from([None, 0, 2]),
    first=st.integers(0, 10),
)
def test_sites_hold_what_a_plain_account_says(rows, by, at, device, first):
    first = min(first, len(rows))
    recording = recording_of(rows, initial_events=first)
    assume(device is None or device in recording.devices)
    seen = rows
    if isinstance(at, int):
        seen = [*rows[:first], *(row for row in rows[first:] if row["time"] <= at)]
    elif at == "peak":
        seen, _ = moments(rows, first, device)

    table = recording.sites(by, at=at, device=device)

    key = (lambda stack: stack) if by == "stack" else (lambda stack: stack % LINES)
    live, total = Counter(), Counter()
    for block in live_blocks(seen, device):
        live[key(block.stack)] += block.end - block.start
    for row in rows[first:]:
        if row["action"] == "alloc" and device in (None, row["device"]):
            total[key(row["stack"])] += row["size"]
    found = {key(row["stack"]): row for row in table.to_pylist()}
    assert len(found) == table.num_rows
    assert {k: row["live_bytes"] for k, row in found.items() if row["live_bytes"]} == dict(live)
    assert {k: row["total_bytes"] for k, row in found.items() if row["total_bytes"]} == dict(total)
    assert all(row["site"] == f"step (run.py:{row['stack'] % LINES})" for row in found.values())
    order = [(-row["live_bytes"], -row["total_bytes"]) for row in table.to_pylist()]
    assert order == sorted(order)


@EXAMPLES
@given(rows=any_events(), at=st.one_of(st.sampled_from(["peak", None]), st.integers(-1, 90)))
def test_the_parts_of_reserved_memory_are_those_of_the_snapshot_and_sum_up(rows, at):
    recording = recording_of(rows)
    for device in recording.devices:
        parts = recording.fragmentation(at, device)
        segments = recording.memory_snapshot(at, device)
        inside = [s for s in segments if s["segment_type"] != "unknown"]
        free = [b["size"] for s in inside for b in s["blocks"] if b["state"] == "inactive"]
        used = [b for s in inside for b in s["blocks"] if b["state"] == "active_allocated"]
        split = [
            b["size"]
            for s in inside
            for b in s["blocks"]
            if b["state"] == "inactive" and not s["is_expandable"] and len(s["blocks"]) > 1
        ]
        assert parts.reserved == sum(s["total_size"] for s in inside)
        assert parts.requested == sum(b["requested_size"] for b in used)
        assert parts.rounding == sum(b["size"] - b["requested_size"] for b in used)
        assert parts.pending_free == sum(s["active_size"] - s["allocated_size"] for s in inside)
        assert parts.inactive_split == sum(split)
        assert parts.free == sum(free)
        assert parts.largest_free == max(free, default=0)
        assert parts.cached_whole == sum(free) - sum(split)
        assert parts.outside == sum(s["active_size"] for s in segments if s not in inside)
        assert parts.reserved == (
            parts.requested
            + parts.rounding
            + parts.pending_free
            + parts.inactive_split
            + parts.cached_whole
        )
        pools = parts.pools.to_pydict()
        assert sum(pools["reserved"]) == parts.reserved
        assert sum(pools["free"]) == parts.free
        assert max(pools["largest_free"], default=0) == parts.largest_free


@EXAMPLES
@given(rows=any_events(), cut=st.integers(0, 40))
def test_events_before_a_cut_can_be_replaced_by_those_that_lead_to_the_same_state(rows, cut):
    cut = min(cut, len(rows))
    state = MemoryState()
    state.apply(memory_columns(rows_table(rows[:cut])))

    before = initial_events(state)
    joined = pa.concat_tables([before, rows_table(rows[cut:])]).unify_dictionaries()
    whole = recording_of(rows)
    short = recording_of(rows, initial_events=before.num_rows)
    object.__setattr__(short, "tables", dict(short.tables) | {"memory_events": joined})

    assert before["time"].to_pylist() == sorted(before["time"].to_pylist())
    assert short.memory_snapshot() == whole.memory_snapshot()
    assert set(short.devices) <= set(whole.devices)
    for device in short.devices:
        now, then = short.memory_stats(device), whole.memory_stats(device)
        current = [key for key in then if key.endswith(".current")]
        assert {key: now[key] for key in current} == {key: then[key] for key in current}
        assert all(now[key] <= then[key] for key in then if key.endswith(".peak"))


def test_pages_mapped_below_older_ones_do_not_make_their_blocks_older_than_their_segment():
    rows = [
        {"time": 1, "action": "segment_map", "address": 64, "size": 64, "stack": 1},
        {"time": 2, "action": "alloc", "address": 64, "size": 32, "stack": 2},
        {"time": 3, "action": "segment_map", "address": 0, "size": 64, "stack": 3},
    ]
    state = MemoryState()
    state.apply(memory_columns(rows_table(rows)))

    before = initial_events(state)

    assert before["action"].to_pylist() == ["segment_map", "alloc"]
    assert before["time"].to_pylist() == [1, 2]
    assert before["size"].to_pylist() == [128, 32]
    assert before["stack"].to_pylist() == [1, 2]


def test_by_that_is_neither_stack_nor_line_is_refused_with_the_choices():
    with pytest.raises(ValueError, match='by must be "stack" or "line", got \'file\''):
        recording_of([]).sites("file")


@pytest.mark.parametrize("at", ["start", 1.5, True])
def test_a_moment_that_is_none_is_refused_with_the_choices(at):
    with pytest.raises(ValueError, match='a time in ns, "peak" or "end", got'):
        recording_of([]).memory_snapshot(at)


@pytest.mark.parametrize(
    ("at", "blocks"),
    [(np.int64(3), 1), (np.uint32(2), 0), (-(10**30), 0), (2**63, 1), (10**30, 1)],
)
def test_a_moment_may_be_an_integer_of_any_kind_and_size(at, blocks):
    rows = [{"time": 3, "action": "alloc", "address": 64, "size": 8, "stack": 1}]

    assert len(recording_of(rows).memory_snapshot(at)) == blocks
    assert recording_of(rows).sites(at=at)["live_count"].to_pylist() == [blocks]


def test_a_device_that_was_not_seen_is_refused_with_those_that_were():
    rows = [{"action": "alloc", "address": 64, "size": 8, "device": 2, "stack": 1}]
    for ask in ("fragmentation", "memory_snapshot", "memory_stats", "peak", "sites"):
        with pytest.raises(ValueError, match=r"the recording has no device 1; its devices are 2"):
            getattr(recording_of(rows), ask)(device=1)


def test_an_empty_recording_answers_every_question_with_nothing():
    empty = recording_of([])

    assert empty.memory_snapshot() == []
    assert empty.sites().num_rows == 0
    assert empty.peak().bytes == 0
    assert empty.fragmentation().reserved == 0
    assert empty.memory_levels.num_rows == 0
    assert sum(empty.memory_stats()[key] for key in ("num_ooms", "segment.all.current")) == 0
