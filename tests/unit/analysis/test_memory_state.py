"""The native core's memory state, against one in plain Python."""

from collections import Counter, defaultdict
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz._core import MemoryColumns, MemoryState
from gpuviz.data.manifest import Manifest
from gpuviz.data.memory_columns import memory_columns
from gpuviz.recording import Recording
from tests.examples import examples
from tests.unit.recording.from_events import COUNTED, one_line_stacks, rows_table
from tests.unit.recording.plain_memory import PlainMemory

EXAMPLES = examples(24)

PAGE = 4
SPACE = 16 * PAGE
ACTIONS = st.sampled_from(
    [
        *("alloc", "alloc", "alloc", "free_requested", "free_completed", "free_completed"),
        *("segment_alloc", "segment_map", "segment_map", "segment_unmap", "segment_free"),
        *("oom", "record_stream", "snapshot"),
    ],
)


@st.composite
def any_events(draw, longest=40):
    """Events in a tiny address space, so that many overlap, consistently or not."""
    rows = []
    time = 0
    for _ in range(draw(st.integers(0, longest))):
        action = draw(ACTIONS)
        unit = PAGE if action.startswith("segment") else 1
        time += draw(st.integers(0, 2))
        size = unit * draw(st.integers(0, 6))
        rows.append(
            {
                "time": time,
                "action": action,
                "address": unit * draw(st.integers(0, SPACE // unit)),
                "size": size,
                "requested_size": draw(st.integers(0, size)) if action == "alloc" else 0,
                "device": draw(st.sampled_from([0, 0, 0, 2])),
                "stream": draw(st.integers(1, 2)),
                "pool": draw(st.integers(0, 1)),
                "stack": len(rows) + 1,
            },
        )
    return rows


@st.composite
def consistent_events(draw, longest=40):
    """Events that do not contradict earlier ones, checked with the state in plain Python."""
    memories = defaultdict(PlainMemory)
    kept = []
    for row in draw(any_events(longest)):
        trial = deepcopy(memories[row["device"]])
        trial.apply(row)
        if trial.anomalies == 0:
            memories[row["device"]] = trial
            kept.append(row)
    return kept


def recording_of(rows, **manifest):
    tables = {"memory_events": rows_table(rows), **one_line_stacks([row["stack"] for row in rows])}
    return Recording(tables, Manifest(**manifest))


def state_snapshot(state, device):
    """Return a native state in the form of PlainMemory.snapshot."""
    segments = {name: column.tolist() for name, column in state.segments().items()}
    blocks = {name: column.tolist() for name, column in state.blocks().items()}
    found = {}
    for row, ordinal in enumerate(segments["device"]):
        if ordinal == device:
            names = ("address", "size", "stream", "pool")
            plain = tuple(segments[name][row] for name in names)
            found[row] = (*plain, bool(segments["is_expandable"][row]), [])
    for row, ordinal in enumerate(blocks["device"]):
        if ordinal != device:
            continue
        names = ("address", "size", "requested_size", "state", "stack")
        block = tuple(blocks[name][row] for name in names)
        if blocks["segment"][row] >= 0:
            is_live = block[3] != 0
            found[blocks["segment"][row]][-1].append(block if is_live else (*block[:2], 0, 0, 0))
        else:
            found[f"outside {row}"] = (
                *(blocks[name][row] for name in ("address", "size", "stream", "pool")),
                None,
                [block],
            )
    return sorted(found.values(), key=lambda each: each[0])


def applied(rows):
    state = MemoryState()
    state.apply(memory_columns(rows_table(rows)))
    return state


@EXAMPLES
@given(rows=any_events())
def test_segments_blocks_and_anomalies_are_those_of_a_plain_account(rows):
    memories = defaultdict(PlainMemory)
    for row in rows:
        memories[row["device"]].apply(row)

    state = applied(rows)

    assert state.devices() == sorted(memories)
    for device, memory in memories.items():
        assert state_snapshot(state, device) == memory.snapshot()
    assert state.anomalies == sum(memory.anomalies for memory in memories.values())


@EXAMPLES
@given(rows=any_events(), first=st.integers(0, 40))
def test_levels_have_a_row_for_each_change_of_a_plain_account(rows, first):
    first = min(first, len(rows))
    memories = defaultdict(PlainMemory)
    expected = []
    for row in rows[:first]:
        memories[row["device"]].apply(row)
    expected += [(0, device, *memories[device].levels()) for device in sorted(memories)]
    for row in rows[first:]:
        memory = memories[row["device"]]
        before = memory.levels()
        memory.apply(row)
        if memory.levels() != before:
            expected.append((row["time"], row["device"], *memory.levels()))

    levels = recording_of(rows, initial_events=first).memory_levels

    assert list(zip(*levels.to_pydict().values(), strict=True)) == expected


@EXAMPLES
@given(rows=any_events())
def test_free_levels_have_the_largest_free_block_of_a_plain_account_after_each_event(rows):
    memories, expected = defaultdict(PlainMemory), defaultdict(list)
    for row in rows:
        memory, levels = memories[row["device"]], expected[row["device"]]
        memory.apply(row)
        is_known = bool(memory.segments) or bool(levels and levels[-1])
        levels.append((memory.largest_gap(), memory.outside_bytes()) if is_known else None)

    changes = recording_of(rows).derived["free_levels"].to_pylist()

    for device, levels in expected.items():
        own = [row for row in changes if row["device"] == device]
        ends = [row["event"] for row in own[1:]] + [len(levels)] * bool(own)
        found = [None] * (own[0]["event"] if own else len(levels))
        for row, end in zip(own, ends, strict=True):
            found += [(row["largest"], row["outside"])] * (end - row["event"])
        assert found == levels
        assert not own or own[-1]["event"] == len(levels) - 1


@EXAMPLES
@given(rows=consistent_events(), first=st.integers(0, 40))
def test_statistics_are_those_of_a_plain_account_after_what_existed_before(rows, first):
    first = min(first, len(rows))
    memories = defaultdict(PlainMemory)
    expected = defaultdict(Counter)
    for number, row in enumerate(rows):
        memory, stats = memories[row["device"]], expected[row["device"]]
        before = memory.current()
        memory.apply(row)
        count(stats, before, memory.current())
        if number + 1 == first:
            for device in memories:
                forget(expected[device], memories[device].current())

    recording = recording_of(rows, initial_events=first)

    for device in memories:
        found = recording.memory_stats(device)
        keys = [key for key in found if key.split(".")[0] in COUNTED]
        assert {key: found[key] for key in keys} == {key: expected[device][key] for key in keys}
        assert found["num_ooms"] == sum(
            row["action"] == "oom" and row["device"] == device for row in rows[first:]
        )


def count(stats, before, after):
    for name, kind in {**before, **after}:
        key = f"{name}.{kind}"
        change = after[name, kind] - before[name, kind]
        stats[f"{key}.current"] = after[name, kind]
        stats[f"{key}.peak"] = max(stats[f"{key}.peak"], after[name, kind])
        stats[f"{key}.allocated" if change > 0 else f"{key}.freed"] += abs(change)


def forget(stats, current):
    stats.clear()
    for (name, kind), value in current.items():
        stats[f"{name}.{kind}.current"] = stats[f"{name}.{kind}.peak"] = value


WILD = {
    "time": st.integers(-(2**63), 2**63 - 1),
    "address": st.integers(0, 2**64 - 1),
    "size": st.integers(-(2**63), 2**63 - 1),
    "requested_size": st.integers(-(2**63), 2**63 - 1),
    "device": st.integers(-3, 3),
    "pool": st.integers(0, 2**32 - 1),
}


@EXAMPLES
@given(rows=st.lists(st.fixed_dictionaries({"action": ACTIONS, **WILD}), max_size=30))
def test_values_that_cannot_be_are_counted_and_change_nothing(rows):
    table = rows_table(rows)
    impossible = [
        row
        for row in rows
        if min(row["size"], row["requested_size"], row["device"]) < 0
        or (row["action"] != "oom" and row["address"] + row["size"] > 2**62)
    ]
    state = MemoryState()

    state.apply(memory_columns(table))
    again = applied([row for row in rows if row not in impossible])

    assert state.anomalies == again.anomalies + len(impossible)
    for device in again.devices():
        assert state_snapshot(state, device) == state_snapshot(again, device)
        assert state.statistics(device) == again.statistics(device)


def test_totals_of_endless_nonsense_stay_defined():
    row = {"action": "alloc", "address": 0, "size": 2**61, "requested_size": 2**61}
    state = applied([row] * 9)

    assert state.statistics(0)["allocated_bytes.all.current"] == 2**61
    assert state.anomalies == 8


def test_columns_of_different_lengths_are_refused():
    columns = {
        name: np.zeros(3, kind)
        for name, kind in {
            **dict.fromkeys(("time", "size", "requested_size"), np.int64),
            **dict.fromkeys(("stream", "pool", "stack", "thread"), np.uint32),
            "action": np.int8,
            "framework": np.int8,
            "address": np.uint64,
            "device": np.int16,
        }.items()
    }
    assert len(MemoryColumns(**columns)) == 3
    with pytest.raises(ValueError, match="column 'size' has 2 rows, expected 3"):
        MemoryColumns(**columns | {"size": np.zeros(2, np.int64)})
