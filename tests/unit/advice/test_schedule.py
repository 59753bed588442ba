"""Replays of a recording with changes, against running the changed program."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.analysis.intervals import Intervals
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.examples import examples
from tests.unit.advice.timed_programs import timed
from tests.unit.recording.from_activities import Timeline

durations = st.integers(1_000, 300_000)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("launch"), durations),
        st.tuples(st.just("launch"), durations),
        st.tuples(st.just("work"), durations),
        st.tuples(st.just("wait"), st.just(0)),
    ),
    min_size=1,
    max_size=30,
)
# A removed call also saves what it costs itself, and the latency of a launch to an idle GPU varies.
CALL_NS, LATENCY_NS = 1_000, 4_000


def run(gpu, steps, *, waits=True, works=True, share_of_duration=1.0):
    for kind, ns in [("launch", 5_000), *steps]:
        if kind == "launch":
            gpu.launch("kernel", duration=max(ns * share_of_duration, 1) * 1e-9)
        elif kind == "work" and works:
            gpu.work_on_host(ns * 1e-9)
        elif kind == "wait" and waits:
            gpu.synchronize()


def difference(steps, **change):
    before, after = timed(lambda gpu: run(gpu, steps)), timed(lambda gpu: run(gpu, steps, **change))
    return before, before.duration_ns - after.duration_ns


@examples(40)
@given(steps)
def test_without_waits_a_program_is_as_much_faster_as_predicted(steps):
    recording, measured = difference(steps, waits=False)

    calls = recording.tables["api_calls"].num_rows
    saved = Schedule(recording).saved_ns(ScheduleChange(without_wait=np.ones(calls, bool)))

    assert abs(saved - measured) <= LATENCY_NS + CALL_NS * len(steps)


@examples(40)
@given(steps)
def test_with_shorter_kernels_a_program_is_as_much_faster_as_predicted(steps):
    recording, measured = difference(steps, share_of_duration=0.25)

    schedule = Schedule(recording)
    saved = schedule.saved_ns(ScheduleChange(duration=schedule.duration // 4))

    assert abs(saved - measured) <= LATENCY_NS


@examples(40)
@given(steps)
def test_without_work_of_the_host_a_program_is_as_much_faster_as_predicted(steps):
    recording, measured = difference(steps, works=False)

    calls = recording.tables["api_calls"].num_rows
    saved = Schedule(recording).saved_ns(ScheduleChange(without_gap=np.ones(calls, bool)))

    assert abs(saved - measured) <= LATENCY_NS


@examples(40)
@given(steps)
def test_nothing_changes_without_a_change(steps):
    recording = timed(lambda gpu: run(gpu, steps))

    schedule = Schedule(recording)
    calls = np.zeros(recording.tables["api_calls"].num_rows, bool)

    assert schedule.saved_ns() == 0
    nothing = ScheduleChange(without_wait=calls, without_gap=calls, instant=calls)
    assert schedule.saved_ns(nothing) == 0


@examples(40)
@given(steps)
def test_changes_in_sequence_save_together_what_all_save(steps):
    recording, measured = difference(steps, waits=False, share_of_duration=0.25)
    calls = recording.tables["api_calls"].num_rows
    schedule = Schedule(recording)
    changes = [
        ScheduleChange(duration=schedule.duration // 4),
        ScheduleChange(without_wait=np.ones(calls, bool)),
    ]

    first, second = schedule.saved_in_sequence(changes)

    assert first == schedule.saved_ns(changes[0])
    assert first + second == schedule.saved_ns(*changes)
    assert abs(first + second - measured) <= LATENCY_NS + CALL_NS * len(steps)


def test_a_copy_that_is_stamped_before_the_kernel_that_it_waits_for_moves_with_its_call():
    timeline = Timeline()
    us = 1_000
    # Begin of the call, and begin and end of the work.
    for number, (called, began, ended) in enumerate(
        [(0, 20, 50), (10_000, 10_045, 10_065), (10_006, 10_040, 10_070), (20_000, 20_020, 20_050)],
        1,
    ):
        timeline.call(called * us, (called + 5) * us, correlation=number)
        add = timeline.copy if number == 3 else timeline.kernel
        add(began * us, ended * us, correlation=number)
    schedule = Schedule(timeline.recording(duration_ns=20_050 * us))

    saved = schedule.saved_ns(ScheduleChange(without_gap=np.ones(4, bool)))

    assert saved > 19_000 * us


LAUNCHES = 3000


def with_a_full_queue(recording, duration_ns, room):
    """Return a recording of launches in a row with the times of a queue with room for some."""
    calls = recording.tables["api_calls"].to_pylist()
    work = recording.tables["activities"].to_pylist()
    launching = [call for call in calls if call["correlation"] in {w["correlation"] for w in work}]
    host = done = 0
    ends = []
    for number, (call, activity) in enumerate(zip(launching, work, strict=True)):
        called = host + 1_000
        host = called + 5_000
        if number >= room:
            host = max(host, ends[number - room] + 6_000)
        begin = max(called + 6_000, done + 1_000)
        done = begin + duration_ns
        ends.append(done)
        call |= {"time": called, "end": host, "own_cost": 0}
        activity |= {"time": begin, "end": done}
    tables = recording.tables | {
        "api_calls": pa.Table.from_pylist(launching, schemas()["api_calls"]),
        "activities": pa.Table.from_pylist(work, schemas()["activities"]),
        "synchronizations": recording.tables["synchronizations"].slice(0, 0),
    }
    manifest = replace(recording.manifest, duration_ns=done + 1)
    return Recording(tables, manifest)


@pytest.mark.parametrize(("faster", "room"), [(2, 1022), (20, 1022), (2, 936), (20, 936)])
def test_launches_that_waited_for_room_in_the_queue_come_sooner_with_shorter_kernels(faster, room):
    recording = timed(lambda gpu: [gpu.launch("long", duration=1e-4) for _ in range(LAUNCHES)])
    before, after = (with_a_full_queue(recording, 100_000 // each, room) for each in (1, faster))
    schedule = Schedule(before)

    assert schedule.saved_ns(ScheduleChange()) == 0
    saved = schedule.saved_ns(ScheduleChange(duration=schedule.duration // faster))
    assert saved == pytest.approx(before.duration_ns - after.duration_ns, rel=0.01)


def test_a_free_of_memory_ends_sooner_with_shorter_kernels():
    def waits(gpu, duration):
        for _ in range(10):
            gpu.launch("long", duration=duration)
            gpu.synchronize()

    before, after = (timed(lambda gpu, each=each: waits(gpu, each)) for each in (1e-3, 1e-4))
    strings = before.tables["strings"].to_pylist()
    waiting = {each["id"] for each in strings if "Synchronize" in each["text"]}
    free = max(each["id"] for each in strings) + 1
    strings.append({"id": free, "text": "cuMemFree_v2"})
    calls = before.tables["api_calls"].to_pylist()
    for call in calls:
        call["name"] = free if call["name"] in waiting else call["name"]
    tables = before.tables | {
        "strings": pa.Table.from_pylist(strings, schemas()["strings"]),
        "api_calls": pa.Table.from_pylist(calls, schemas()["api_calls"]),
        "synchronizations": before.tables["synchronizations"].slice(0, 0),
    }
    schedule = Schedule(Recording(tables, before.manifest))

    saved = schedule.saved_ns(ScheduleChange(duration=schedule.duration // 10))
    assert saved == pytest.approx(before.duration_ns - after.duration_ns, rel=0.02)


def test_what_a_change_saves_can_be_limited():
    recording = timed(lambda gpu: run(gpu, [("launch", 100_000), ("launch", 100_000)]))
    schedule = Schedule(recording)
    at_most = ScheduleChange(duration=schedule.duration // 2, at_most_ns=1234)
    all_ = ScheduleChange(duration=schedule.duration // 4)

    assert schedule.saved_alone(at_most) == 1234
    assert schedule.saved_in_sequence([at_most, all_]) == [
        1234,
        schedule.saved_ns(all_) - schedule.saved_ns(at_most),
    ]


def test_without_calls_everything_stays_where_it_was():
    recording = timed(lambda gpu: run(gpu, [("wait", 0), ("launch", 50_000)]))
    tables = dict(recording.tables)
    tables["api_calls"] = tables["api_calls"].slice(0, 0)

    schedule = Schedule(Recording(tables, recording.manifest))

    assert schedule.saved_ns(ScheduleChange(duration=schedule.duration)) == 0
    assert schedule.saved_ns(ScheduleChange(duration=schedule.duration // 2)) == 25_000


def test_damaged_times_and_ids_do_no_harm():
    recording = timed(lambda gpu: run(gpu, [("wait", 0), ("launch", 50_000)]))
    tables = dict(recording.tables)
    calls, activities = tables["api_calls"], tables["activities"]
    none = np.zeros(activities.num_rows, np.uint32)
    tables["activities"] = activities.set_column(
        activities.schema.get_field_index("correlation"), "correlation", [none]
    )
    backwards = calls["end"].to_numpy()[::-1].copy()
    tables["api_calls"] = calls.set_column(calls.schema.get_field_index("end"), "end", [backwards])

    schedule = Schedule(Recording(tables, recording.manifest))

    assert schedule.saved_ns() == 0
    assert schedule.call.tolist() == [-1, -1]


intervals = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 10)), max_size=8)


@given(intervals, intervals)
def test_covered_time_is_that_of_the_moments_in_any_interval(parts, queries):
    begin = np.array([first for first, _ in parts], np.int64)
    end = np.array([first + length for first, length in parts], np.int64)
    since = np.array([first for first, _ in queries], np.int64)
    until = np.array([first + length for first, length in queries], np.int64)

    union = Intervals(begin, end)

    moments = {moment for first, length in parts for moment in range(first, first + length)}
    covered = [
        len(moments & set(range(first, last)))
        for first, last in zip(since.tolist(), until.tolist(), strict=True)
    ]
    assert union.length == len(moments)
    assert union.within(since, until).tolist() == covered


def test_a_constraint_from_a_later_moment_is_refused():
    from gpuviz import _core

    times = np.zeros(2, np.int64)
    later, earlier = np.array([1], np.uint32), np.array([0], np.uint32)

    with pytest.raises(ValueError, match="sorted by target, after their source"):
        _core.earliest_times(times, later, earlier, np.zeros(1, np.int64))
