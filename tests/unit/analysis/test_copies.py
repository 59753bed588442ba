"""The copy table, against plain Python and by hand."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.data.tables import DICTIONARIES
from tests.examples import examples
from tests.unit.recording.from_activities import Timeline
from tests.unit.recording.plain_summary import activity_rows, floor_median, groups, typical

EXAMPLES = examples(20)
KINDS = DICTIONARIES["activities", "copy_kind"]
MEMORIES = DICTIONARIES["activities", "source"]
KEYS = {"kind": "copy_kind", "line": "site", "stack": "stack"}


@st.composite
def any_copies(draw):
    timeline = Timeline()
    for correlation in range(1, draw(st.integers(1, 12))):
        time = draw(st.integers(0, 30))
        columns = {
            "copy_kind": draw(st.sampled_from(KINDS)),
            "source": draw(st.sampled_from(MEMORIES)),
            "destination": draw(st.sampled_from(MEMORIES)),
            "bytes": draw(st.integers(0, 1 << 40)),
            "correlation": correlation,
        }
        timeline.copy(time, time + draw(st.integers(-1, 3)), **columns)
        if draw(st.booleans()):
            line = draw(st.none() | st.integers(1, 3))
            timeline.call(0, 1, "cuMemcpyAsync", correlation=correlation, line=line)
    timeline.kernel(0, 5, correlation=1)
    return timeline.recording()


def host_memory(row):
    sides = {
        "host_to_device": [row["memory_from"]],
        "device_to_host": [row["destination"]],
        "host_to_host": [row["memory_from"], row["destination"]],
    }
    memories = sides.get(row["copy_kind"], [""])
    chosen = "pageable" if "pageable" in memories else memories[0]
    return chosen if chosen in ("pageable", "pinned", "managed") else ""


@EXAMPLES
@given(recording=any_copies(), by=st.sampled_from(list(KEYS)))
def test_the_numbers_are_those_of_a_plain_account(recording, by):
    rows = activity_rows(recording, "memcpy")
    found = {
        (row[KEYS[by]], row["copy_kind"], row["host_memory"]): row
        for row in recording.copies(by).to_pylist()
    }

    expected = groups(rows, lambda row: (row[KEYS[by]], row["copy_kind"], host_memory(row)))
    assert found.keys() == expected.keys()
    for key, group in expected.items():
        lengths = [row["length"] for row in group]
        size, total = sum(row["bytes"] for row in group), sum(lengths)
        most = typical(group, lambda row: row["stack"])
        assert found[key] == {
            "copy_kind": key[1],
            "host_memory": key[2],
            **{name: most[name] for name in ("site", "source", "stack")},
            "sites": [site for site, _ in Counter(row["site"] for row in group).most_common()],
            "count": len(group),
            "bytes": size,
            "total_ns": total,
            "median_ns": floor_median(lengths),
            "bytes_per_second": pytest.approx(size / total * 1e9) if total else None,
        }


def test_bandwidth_is_bytes_over_total_time():
    timeline = Timeline()
    timeline.copy(0, 1000, bytes=25_000)
    timeline.copy(2000, 5000, bytes=75_000)
    (row,) = timeline.recording().copies().to_pylist()

    assert (row["copy_kind"], row["host_memory"]) == ("host_to_device", "pinned")
    assert (row["bytes"], row["bytes_per_second"]) == (100_000, 25e9)


def test_pageable_and_pinned_copies_are_apart_and_most_time_comes_first():
    timeline = Timeline()
    timeline.copy(0, 10, bytes=7)
    timeline.copy(0, 90, bytes=5, source="pageable")
    found = timeline.recording().copies().to_pylist()

    assert [(row["host_memory"], row["bytes"]) for row in found] == [("pageable", 5), ("pinned", 7)]


@pytest.mark.parametrize("by", KEYS)
def test_without_copies_the_table_has_its_columns_and_no_rows(by):
    timeline = Timeline()
    timeline.copy(0, 10)
    empty = Timeline().recording().copies(by)

    assert empty.num_rows == 0
    assert empty.schema == timeline.recording().copies(by).schema


def test_an_unknown_by_is_refused_with_what_is_known():
    with pytest.raises(ValueError, match='by must be "kind", "line" or "stack", got \'name\''):
        Timeline().recording().copies("name")
