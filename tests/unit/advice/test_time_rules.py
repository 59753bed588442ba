"""All rules about time, on random programs, parts of recordings and damaged ones."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.advice.findings import findings
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.work_rules import time_rules
from gpuviz.recording import Recording
from tests.examples import examples
from tests.unit.advice.timed_programs import timed

STREAMS, ARRAYS = 4, (8, 1 << 20, 16 << 20)
streams = st.integers(0, STREAMS - 1)
arrays = st.integers(0, len(ARRAYS) - 1)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("launch"), streams, st.sampled_from([2_000, 50_000, 900_000]), arrays),
        st.tuples(st.just("copy"), streams, st.booleans(), st.booleans(), st.booleans(), arrays),
        st.tuples(st.just("work"), st.sampled_from([1_000, 20_000, 700_000])),
        st.tuples(st.just("record"), streams),
        st.tuples(st.just("wait"), streams),
        st.tuples(st.just("wait_event"), streams),
        st.tuples(st.just("wait_all")),
    ),
    max_size=40,
)


def run(gpu, operations, repeats):
    queues = [gpu.null_stream, gpu.Stream(), *(gpu.Stream(non_blocking=True) for _ in range(2))]
    memory = [gpu.empty(nbytes) for nbytes in ARRAYS]
    event = gpu.Event()
    for operation in operations * repeats:
        match operation:
            case ("launch", stream, ns, array):
                with queues[stream]:
                    grid = (ns // 10_000 + 1,)
                    gpu.launch("kernel", duration=ns * 1e-9, grid=grid, writes=[memory[array]])
            case ("copy", stream, to_host, pinned, blocking, array):
                copy = gpu.copy_to_host if to_host else gpu.copy_to_device
                with queues[stream]:
                    copy(memory[array], pinned=pinned, blocking=blocking)
            case ("work", ns):
                gpu.work_on_host(ns * 1e-9)
            case ("record", stream):
                event.record(queues[stream])
            case ("wait", stream):
                queues[stream].synchronize()
            case ("wait_event", stream):
                queues[stream].wait_event(event)
            case _:
                gpu.synchronize()


def check(recording):
    schedule = Schedule(recording)
    assert schedule.saved_ns() == 0
    assert schedule.saved_ns(ScheduleChange(duration=schedule.duration)) == 0
    for rule in time_rules():
        for finding in rule(schedule):
            assert 0 <= finding.saved_ns <= recording.duration_ns, finding
            assert finding.title.endswith(".")
            assert finding.reason.endswith(".")
            assert finding.lines
            begin, end = finding.evidence.window
            assert begin <= end
            rows = recording.table(finding.evidence.table).num_rows
            assert all(0 <= row < rows for row in finding.evidence.rows)
    found = findings(recording, small=True)
    assert sum(finding.further_ns for finding in found) <= recording.duration_ns
    assert all(finding.schedule is None for finding in found)


@examples(100)
@given(operations, st.integers(1, 12), st.data())
def test_every_finding_about_a_program_or_a_part_of_it_points_to_rows_and_saves_at_most_all(
    operations, repeats, data
):
    recording = timed(lambda gpu: run(gpu, operations, repeats))
    moments = st.integers(0, max(recording.duration_ns, 1))
    start, end = sorted([data.draw(moments), data.draw(moments)])

    check(recording)
    check(recording.window(start, end))


@pytest.mark.parametrize("table", ["api_calls", "activities", "synchronizations", "devices"])
def test_a_recording_without_a_table_has_findings_of_the_rest(table):
    recording = timed(lambda gpu: run(gpu, [("launch", 1, 900_000, 1), ("wait", 1)], 20))
    tables = dict(recording.tables)
    tables[table] = tables[table].slice(0, 0)

    check(Recording(tables, recording.manifest))


@examples(50)
@given(operations, st.data())
def test_damaged_times_do_no_harm(operations, data):
    recording = timed(lambda gpu: run(gpu, operations, 2))
    tables = dict(recording.tables)
    for name in ("activities", "api_calls", "synchronizations"):
        for column in ("time", "end", "correlation"):
            values = tables[name][column].to_numpy().copy()
            if len(values):
                row = data.draw(st.integers(0, len(values) - 1))
                highest = 2**32 - 1 if column == "correlation" else 2**62 - 1
                values[row] = data.draw(st.sampled_from([0, 1, values[-1], highest]))
            position = tables[name].schema.get_field_index(column)
            kind = tables[name].schema.field(column).type
            tables[name] = tables[name].set_column(position, column, pa.array(values, kind))

    schedule = Schedule(Recording(tables, recording.manifest))

    for rule in time_rules():
        assert all(finding.saved_ns >= 0 for finding in rule(schedule))
    assert np.all(schedule.duration >= 0)
