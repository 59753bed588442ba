"""Incrementally updated derived tables, against those of all rows."""

import math
from collections import defaultdict
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuviz.analysis.classification import classify, derive
from gpuviz.analysis.host_work import host_work_rows
from gpuviz.data.tables import schemas
from gpuviz.recorder import live_classification
from gpuviz.recorder.live_classification import LiveClassification
from tests.unit.formats.any_recording import any_recording
from tests.unit.recording.any_timeline import RECORDINGS
from tests.unit.recording.from_activities import Timeline

TABLES = ("activities", "api_calls", "synchronizations")
TIMES = {
    "host_waits": "time",
    "idle_gaps": "time",
    "host_work": "time",
    "stream_waits": "recorded_time",
    "peer_copies": "time",
}


class Page:
    """Updates derived tables like a browser: rows from a time on are replaced."""

    def __init__(self, live, tables):
        self.live = live
        self.rows = {name: rows.to_pylist() for name, rows in live.restart(tables).items()}

    def update(self, until_s=math.inf):
        from_ns = self.live.from_ns
        for name, rows in (self.live.advance(until_s) or {}).items():
            time = TIMES.get(name)
            kept = [row for row in self.rows[name] if time is None or row[time] < from_ns]
            self.rows[name] = kept + rows.to_pylist()


def empty_tables():
    return {name: schema.empty_table() for name, schema in schemas().items()}


def in_order(rows):
    return sorted(tuple(str(value) for value in row.values()) for row in rows)


def joined(gaps):
    """Return idle time by lane, with adjacent parts of the same cause merged."""
    lanes = defaultdict(list)
    for gap in sorted(gaps, key=lambda gap: (gap["device"], gap["stream"], gap["time"])):
        lane = lanes[gap["device"], gap["stream"]]
        what = (gap["cause"], gap["activity"])
        if lane and lane[-1][1:] == (gap["time"], what):
            lane[-1] = (lane[-1][0], gap["end"], what)
        else:
            lane.append((gap["time"], gap["end"], what))
    return dict(lanes)


@settings(deadline=None)
@given(RECORDINGS, st.data())
def test_as_long_as_all_rows_are_at_hand_nothing_differs(recording, data):
    tables = recording.tables
    live = LiveClassification()
    page = Page(live, empty_tables())
    for batch in tables["strings"].to_batches():
        live.take("strings", batch)
    counts = dict.fromkeys(TABLES, 0)
    for _ in range(data.draw(st.integers(1, 4))):
        for name in TABLES:
            rows = data.draw(st.integers(0, tables[name].num_rows - counts[name]))
            for batch in tables[name].slice(counts[name], rows).combine_chunks().to_batches():
                live.take(name, batch)
            counts[name] += rows
            for _ in range(data.draw(st.integers(0, 9))):
                page.update(until_s=0)  # a step; rows that come later are for the next update
        page.update()
    for name in TABLES:
        for batch in tables[name].slice(counts[name]).combine_chunks().to_batches():
            live.take(name, batch)
    page.update()  # completes an update
    page.update()
    whole = classify(tables)

    for name in ("host_waits", "stream_waits"):
        assert in_order(page.rows[name]) == in_order(whole[name].to_pylist())
    assert joined(page.rows["idle_gaps"]) == joined(whole["idle_gaps"].to_pylist())


def steady(steps):
    """A program with one kernel and one wait per step, on one stream."""
    made = Timeline()
    for step in range(steps):
        at, correlation = 100 * step, step + 1
        made.call(at, at + 5, "cuLaunchKernel", correlation=2 * correlation, line=1)
        made.kernel(at + 10, at + 60, correlation=2 * correlation)
        made.call(at + 5, at + 70, "cuStreamSynchronize", correlation=2 * correlation + 1, line=2)
        made.synchronization(
            "stream_synchronize", at + 6, at + 69, stream=1, correlation=2 * correlation + 1
        )
    return made.recording().tables


@pytest.mark.parametrize("batch_rows", [7, 25, 400])
def test_a_long_recording_is_classified_from_its_tail_as_from_all_of_it(batch_rows, monkeypatch):
    monkeypatch.setattr(live_classification, "OVERLAP_ROWS", 20)
    steps = 400
    tables = steady(steps)
    sizes = []
    monkeypatch.setattr(
        live_classification,
        "derive",
        lambda rows, name: sizes.append(rows["api_calls"].num_rows) or derive(rows, name),
    )
    live = LiveClassification()
    page = Page(live, empty_tables())
    for batch in tables["strings"].to_batches():
        live.take("strings", batch)
    for first in range(0, steps, batch_rows):
        for name in TABLES:
            each = 2 * batch_rows if name == "api_calls" else batch_rows
            start = 2 * first if name == "api_calls" else first
            for batch in tables[name].slice(start, each).combine_chunks().to_batches():
                live.take(name, batch)
        page.update()
    whole = classify(tables)

    assert max(sizes) <= 2 * batch_rows + 60
    assert in_order(page.rows["host_waits"]) == in_order(whole["host_waits"].to_pylist())
    assert joined(page.rows["idle_gaps"]) == joined(whole["idle_gaps"].to_pylist())


def test_a_long_wait_that_becomes_known_late_is_added(monkeypatch):
    monkeypatch.setattr(live_classification, "OVERLAP_ROWS", 20)
    tables = steady(100)
    live = LiveClassification()
    page = Page(live, tables)
    late = Timeline()
    late.call(5, 9_990, "cuCtxSynchronize", correlation=9999, thread=2)
    late.synchronization("context_synchronize", 6, 9_989, correlation=9999)
    rows = late.recording().tables
    for name in ("api_calls", "synchronizations"):
        for batch in rows[name].to_batches():
            live.take(name, batch)
    page.update()
    page.update()
    waits = [row for row in page.rows["host_waits"] if row["kind"] == "context_synchronize"]

    assert [(row["time"], row["end"]) for row in waits] == [(6, 9_989)]
    assert waits[0]["synchronization"] == 100
    assert len(page.rows["host_waits"]) == 101


def test_idle_time_is_cut_where_it_may_change_and_never_lies_double():
    tables = steady(1200)
    live = LiveClassification()
    page = Page(live, tables)
    for rows in (page.rows["idle_gaps"], live.whole(tables)["idle_gaps"].to_pylist()):
        assert all(row["end"] <= live.from_ns or row["time"] >= live.from_ns for row in rows)
        lane = sorted((row["time"], row["end"]) for row in rows if row["stream"] == 0)
        assert all(before[1] <= after[0] for before, after in pairwise(lane))


def test_row_numbers_are_unknown_once_the_oldest_rows_were_dropped():
    live = LiveClassification(lambda: False)
    page = Page(live, steady(3))

    assert {row["synchronization"] for row in page.rows["host_waits"]} == {-1}
    assert {row["activity"] for row in page.rows["idle_gaps"]} == {-1}


def held(changes):
    """Return the free levels of each device after each event; a change holds until the next."""
    levels = defaultdict(list)
    for row in changes:
        known = levels[row["device"]]
        last = known[-1] if known else None
        known += [last] * (row["event"] - len(known))
        known.append((row["largest"], row["outside"]))
    return levels


OF_EVENTS = ("memory_events", "launch_blocks", "api_calls", "activities", "pools", "streams")


@settings(deadline=None)
@given(any_recording(), st.integers(1, 5))
def test_facts_about_events_are_added_as_the_events_come(recording, parts):
    tables = recording.tables
    live = LiveClassification()
    page = Page(live, empty_tables())
    for batch in tables["strings"].to_batches():
        live.take("strings", batch)
    for part in range(parts):
        for name in OF_EVENTS:
            first, last = (tables[name].num_rows * each // parts for each in (part, part + 1))
            # A call is known before what it launched.
            first, last = (0, tables[name].num_rows) if name == "api_calls" else (first, last)
            if name != "api_calls" or part == 0:
                for batch in tables[name].slice(first, last - first).combine_chunks().to_batches():
                    live.take(name, batch)
        page.update()
    whole = {name: table.to_pylist() for name, table in classify(tables).items()}

    assert page.rows["memory_marks"] == [
        row for row in whole["memory_marks"] if row in page.rows["memory_marks"]
    ]
    assert {tuple(row.values()) for row in whole["names"]} <= {
        tuple(row.values()) for row in page.rows["names"]
    }
    assert len(page.rows["accessed_blocks"]) == tables["launch_blocks"].num_rows
    assert held(page.rows["free_levels"]) == held(whole["free_levels"])


def test_without_new_rows_nothing_is_classified():
    live = LiveClassification()
    live.restart(steady(3))

    assert not live.is_due()
    assert live.update() == {}


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 40)), max_size=40), st.data())
def test_what_the_host_did_meanwhile_is_what_the_whole_recording_has(steps, data):
    timeline, time = Timeline(), 10_000
    for number, (work, idle) in enumerate(steps, 1):
        timeline.call(time, time + 100, correlation=number, line=number % 3 + 1)
        timeline.kernel(time + 100, time + 100 + 1000 * work, correlation=number)
        began, time = time + 100, time + 1000 * (work + idle) + 200
        row = {"time": began, "end": time, "state": "working", "thread": 1, "samples": 1}
        timeline.add("host_samples", row | {"stack": timeline.stack(number % 5 + 10, "wrap")})
    timeline.add("threads", {"id": 1, "name": "main"})
    recording = timeline.recording()
    live, counts = LiveClassification(), dict.fromkeys((*TABLES, "host_samples"), 0)
    page = Page(live, empty_tables())
    page.rows["host_work"] = []
    for name in ("strings", "frames", "stacks", "threads"):
        for batch in recording.tables[name].to_batches():
            live.take(name, batch)
    for is_last in (*data.draw(st.lists(st.just(False), max_size=3)), True):
        for name, known in counts.items():
            left = recording.tables[name].num_rows - known
            rows = left if is_last else data.draw(st.integers(0, left))
            for batch in recording.tables[name].slice(known, rows).combine_chunks().to_batches():
                live.take(name, batch)
            counts[name] += rows
        page.update()

    expected = host_work_rows(recording).to_pylist()
    assert by_work(page.rows["host_work"]) == by_work(expected)
    assert page.rows["sampled_work"] == recording.derived["sampled_work"].to_pylist()


def by_work(rows):
    """Return the time of each work before each activity, in which parts may be split."""
    sums = defaultdict(int)
    for row in rows:
        sums[row["text"], row["activity"]] += row["end"] - row["time"]
    return dict(sums)
