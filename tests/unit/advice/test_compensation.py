"""Programs whose recording costs time, against the same programs without that cost."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.conclusions.recording_numbers import figures
from gpuviz.recording import Recording
from tests.examples import examples
from tests.unit.advice.costly_programs import (
    ALL_KNOWN,
    LATENCY_NS,
    LAUNCH_BOUND,
    OWN_NS,
    STEP,
    TRACING_NS,
    Program,
    as_costly,
    costly,
    device_waits,
    differences,
    durations,
    launches,
    recorded,
    steps,
    times,
    with_columns,
    work,
)

simple_steps = st.lists(st.one_of(launches, launches, work, device_waits), max_size=30)


@examples(40)
@given(simple_steps)
def test_without_its_costs_a_program_is_the_one_that_was_not_recorded(steps):
    compensated = costly(steps, ALL_KNOWN).compensated()

    assert differences(compensated, recorded(steps)) == dict.fromkeys(times(compensated), 0)


@examples(40)
@given(steps)
def test_so_it_is_with_copies_and_events_but_for_latencies_that_no_row_has(steps):
    compensated = costly(steps, ALL_KNOWN).compensated()

    assert max(differences(compensated, recorded(steps)).values()) <= LATENCY_NS


@examples(20)
@given(simple_steps)
def test_so_it_is_if_the_program_waits_for_another_thread_that_launches(steps):
    with ThreadPoolExecutor(1) as thread:
        compensated = costly(steps, ALL_KNOWN, thread).compensated()

    assert len(set(compensated.tables["api_calls"]["thread"].to_pylist())) == 2
    assert differences(compensated, recorded(steps)) == dict.fromkeys(times(compensated), 0)


def test_a_graph_on_another_stream_still_waits_for_its_launch_before():
    steps = (("launch", 1, 42_000), ("graph", 1), ("graph", 0))
    compensated = costly(steps, ALL_KNOWN).compensated()

    assert differences(compensated, recorded(steps)) == dict.fromkeys(times(compensated), 0)


flushes = st.tuples(st.just("flush"), durations)


def flushed(steps):
    """Return a recording of a program in whose thread CUPTI works for itself."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    program, spans = Program(gpu, own_ns=OWN_NS, tracing_ns=TRACING_NS), []

    def flush(ns):
        begin = gpu._native.now_ns
        gpu.work_on_host(ns * 1e-9)
        spans.append((begin, gpu._native.now_ns))

    with gpuviz.record(device=gpu) as recorder:
        program.run(steps, flush)
    recording = recorder.recording
    start = recording.manifest.start_monotonic_ns
    thread = recording.tables["api_calls"]["thread"][0].as_py()
    rows = [
        {"time": a - start, "end": b - start, "kind": "buffer_flush", "thread": thread}
        | {"correlation": 0}
        for a, b in spans
    ]
    schema = recording.tables["overheads"].schema
    tables = {**recording.tables, "overheads": pa.Table.from_pylist(rows, schema)}
    return Recording(tables, recording.manifest)


@examples(40)
@given(st.lists(st.one_of(launches, launches, work, device_waits, flushes), max_size=30))
def test_so_it_is_without_the_time_that_cupti_takes_for_itself(steps):
    compensated = as_costly(flushed(steps), ALL_KNOWN).compensated()
    expected = recorded([step for step in steps if step[0] != "flush"])

    assert differences(compensated, expected) == dict.fromkeys(times(compensated), 0)


@pytest.mark.parametrize("thread", ["gpuviz-pump", "gpuviz-panel"])
def test_a_wait_for_the_gil_of_a_thread_of_gpuviz_is_a_cost(thread):
    recording = costly(LAUNCH_BOUND, ALL_KNOWN)
    call = recording.tables["api_calls"].to_pylist()[10]
    begin = call["end"] + OWN_NS
    pump = call["thread"] + 1

    def held(holder):
        row = {"time": begin, "end": begin + 8_000, "thread": call["thread"], "stack": 0}
        row |= {"state": "gil", "holder": holder, "samples": 1}
        names = [{"id": pump, "name": thread}, {"id": pump + 1, "name": "other"}]
        tables = dict(recording.tables)
        for name, rows in (("host_samples", [row]), ("threads", names)):
            tables[name] = pa.concat_tables(
                [tables[name], pa.Table.from_pylist(rows, tables[name].schema)]
            )
        return Recording(tables, recording.manifest).recording_cost()

    own, of_other, without = held(pump), held(pump + 1), recording.recording_cost()

    assert of_other == without
    # It is that long at most: a sample has an uncertain begin and end.
    assert own.least_ns == without.least_ns - 8_000
    assert own.most_ns == without.most_ns
    assert own.least_ns <= own.compensated_ns <= own.most_ns


def test_a_recording_that_does_not_know_its_costs_stays_as_it_is():
    recording = costly(STEP, {})

    assert recording.compensated().tables is recording.tables
    assert recording.recording_cost() is None
    assert not any("not recorded" in str(each) for each in figures(recording, 0))


def test_a_compensated_recording_is_not_compensated_again():
    compensated = costly(STEP, ALL_KNOWN).compensated()

    assert compensated.compensated().tables is compensated.tables
    assert compensated.notes[-1] == "Times are those of the program as if it had not been recorded."


def test_what_recording_cost_is_the_difference_of_both_programs():
    recording, unrecorded = costly(LAUNCH_BOUND, ALL_KNOWN), recorded(LAUNCH_BOUND)

    cost = recording.recording_cost()

    calls = recording.tables["api_calls"]
    covered = int(calls["end"].to_numpy()[-1] - calls["time"].to_numpy()[0])
    assert (cost.recorded_ns, cost.cost_ns) == (covered, cost.recorded_ns - cost.compensated_ns)
    times_of_other = times(unrecorded)
    assert cost.compensated_ns == times_of_other["returned"][-1] - times_of_other["called"][0]
    assert (cost.own_ns, cost.tracing_ns) == (
        calls.num_rows * OWN_NS,
        recording.tables["activities"].num_rows * TRACING_NS,
    )
    assert cost.least_ns == cost.most_ns == cost.compensated_ns


def test_costs_that_are_estimated_too_high_leave_calls_one_after_the_other():
    recording = costly((("launch", 0, 2_000),) * 20, ALL_KNOWN)
    too_high = np.full(recording.tables["api_calls"].num_rows, 9 * OWN_NS, np.uint32)

    found = times(
        with_columns(recording, "api_calls", {"own_cost": too_high}, ALL_KNOWN).compensated()
    )

    assert (found["called"][1:] > found["returned"][:-1]).all()


def test_the_headline_and_the_savings_are_those_of_the_program_that_was_not_recorded():
    recording, unrecorded = costly(LAUNCH_BOUND, ALL_KNOWN), recorded(LAUNCH_BOUND)

    (finding,) = (each for each in recording.findings() if each.rule == "R27")
    (expected,) = (each for each in unrecorded.findings() if each.rule == "R27")

    assert (finding.title, finding.saved_ns) == (expected.title, expected.saved_ns)
    assert busy_share(recording) == busy_share(unrecorded)
    assert busy_share(recording) > recording.overlap().devices[0].busy


def busy_share(recording):
    return recording.compensated().overlap().devices[0].busy


def test_a_finding_leads_to_the_recorded_time_and_rows():
    recording = costly(LAUNCH_BOUND, ALL_KNOWN)

    (finding,) = (each for each in recording.findings() if each.rule == "R27")

    work = recording.tables["activities"]
    begin, end = work["time"].to_numpy().min(), work["end"].to_numpy().max()
    assert finding.evidence.window == (begin, end)
    gaps = recording.derived["idle_gaps"].take(list(finding.evidence.rows))
    assert set(gaps["stream"].to_pylist()) == {0}


def test_the_times_of_memory_follow_the_calls_of_their_thread():
    recording, unrecorded = (
        with_columns(each, "api_calls", {}, costs)
        for each, costs in ((costly(STEP, ALL_KNOWN), ALL_KNOWN), (recorded(STEP), {}))
    )
    last = recording.tables["api_calls"]["end"].to_numpy()[-1]
    freed = with_event(recording, int(last) + OWN_NS + 400)

    moved = freed.compensated().tables["memory_events"]["time"].to_pylist()

    assert moved[-1] == unrecorded.tables["api_calls"]["end"].to_pylist()[-1] + 400


def with_event(recording, time_ns):
    """Return a recording with its first memory event again at the end, by the calling thread."""
    events = recording.tables["memory_events"]
    row = {name: events[name][0].as_py() for name in events.schema.names}
    row |= {"time": time_ns, "thread": recording.tables["api_calls"]["thread"][0].as_py()}
    one = pa.Table.from_pylist([row], events.schema)
    tables = {**recording.tables, "memory_events": pa.concat_tables([events, one])}
    return Recording(tables, recording.manifest)
