"""Programs whose recording costs time, against the same programs without that cost."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.conclusions.recording_numbers import figures
from gpuviz.recording import Recording
from tests.examples import examples

OWN_NS, TRACING_NS = 700, 1_900
KINDS = ("launch", "copy", "event_record", "stream_wait")
# What a wait costs before it begins to wait may be hidden by it, so that no row shows it.
ALL_KNOWN = dict.fromkeys(KINDS, (TRACING_NS, TRACING_NS)) | {"synchronize": (0, 0)}
WAITS = ("wait", "event wait", "stream wait")
# The latency of waits that one of the programs does not have, and of work behind events.
LATENCY_NS = 3_000

durations = st.integers(1_000, 60_000)
lanes, numbers = st.integers(0, 1), st.integers(0, 2)
launches = st.tuples(st.just("launch"), lanes, durations)
work = st.tuples(st.just("work"), durations)
device_waits = st.tuples(st.just("wait"))
simple_steps = st.lists(st.one_of(launches, launches, work, device_waits), max_size=30)
steps = st.lists(
    st.one_of(
        launches,
        work,
        device_waits,
        st.tuples(st.just("record"), numbers, lanes),
        st.tuples(st.just("wait for event"), numbers, lanes),
        st.tuples(st.just("event wait"), numbers),
        st.tuples(st.just("stream wait"), lanes),
        st.tuples(st.just("copy"), st.booleans()),
        st.tuples(st.just("graph"), lanes),
    ),
    max_size=30,
)
# Examples of a launch to an idle GPU, and of work right behind other work.
FIRST = (("launch", 0, 5_000), ("launch", 0, 5_000), ("wait",))


class Program:
    """Steps on a simulated GPU, of which each call costs time before and after it.

    With another thread, that makes every second call while this one waits for it.
    """

    def __init__(self, gpu, *, own_ns, tracing_ns, thread=None):
        self.gpu, self.own_ns, self.tracing_ns, self.thread = gpu, own_ns, tracing_ns, thread
        self.streams = [gpu.Stream(non_blocking=True) for _ in range(2)]
        self.events = [gpu.Event() for _ in range(3)]
        self.array = gpu.empty(1 << 20)
        self.streams[0].begin_capture()
        with self.streams[0]:
            for _ in range(2):
                gpu.launch("node", duration=2e-6, share=0.01, grid=(1,))
        self.graph = self.streams[0].end_capture()

    def run(self, steps, flush=None):
        for number, (kind, *arguments) in enumerate([*FIRST, *steps, ("wait",)]):
            if kind == "work":
                self.gpu.work_on_host(arguments[0] * 1e-9)
                continue
            if kind == "flush":
                flush(*arguments)
                continue
            if kind not in WAITS:
                self._cost(self.tracing_ns)
            if self.thread is None or number % 2:
                self._call(kind, *arguments)
            else:
                self.thread.submit(self._call, kind, *arguments).result()
            self._cost(self.own_ns)
            if "event" in kind or kind == "record":
                # A GPU reaches a record later than the host; no row says when.
                self.gpu.work_on_host(2 * LATENCY_NS * 1e-9)

    def _cost(self, ns):
        if ns:
            self.gpu.work_on_host(ns * 1e-9)

    def _call(self, kind, *arguments):
        match kind, *arguments:
            case "launch", lane, ns:
                with self.streams[lane]:
                    self.gpu.launch("kernel", duration=ns * 1e-9, share=0.01, grid=(1,))
            case "graph", lane:
                self.graph.launch(self.streams[lane])
            case "wait", *_:
                self.gpu.synchronize()
            case "record", number, lane:
                self.events[number].record(self.streams[lane])
            case "wait for event", number, lane:
                self.streams[lane].wait_event(self.events[number])
            case "event wait", number:
                self.events[number].synchronize()
            case "stream wait", lane:
                self.streams[lane].synchronize()
            case "copy", pinned:
                with self.streams[0]:
                    self.gpu.copy_to_device(self.array, pinned=pinned)


def recorded(steps, *, own_ns=0, tracing_ns=0, thread=None):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    program = Program(gpu, own_ns=own_ns, tracing_ns=tracing_ns, thread=thread)
    with gpuviz.record(device=gpu) as recorder:
        program.run(steps)
    return recorder.recording


def costly(steps, costs, thread=None):
    """Return a recording of a program that says what recording cost it."""
    return as_costly(recorded(steps, own_ns=OWN_NS, tracing_ns=TRACING_NS, thread=thread), costs)


def as_costly(recording, costs):
    calls = recording.tables["api_calls"]
    is_traced = np.array(["Synchronize" not in name for name in call_names(recording)])
    columns = {
        "time": calls["time"].to_numpy() - TRACING_NS * is_traced,
        "own_cost": np.full(calls.num_rows, OWN_NS, np.uint32),
    }
    return with_columns(recording, "api_calls", columns, costs)


def call_names(recording):
    strings = recording.tables["strings"]
    known = dict(zip(strings["id"].to_pylist(), strings["text"].to_pylist(), strict=True))
    return [known[each] for each in recording.tables["api_calls"]["name"].to_pylist()]


def with_columns(recording, name, columns, costs):
    table = recording.tables[name]
    for column, values in columns.items():
        place = table.schema.get_field_index(column)
        table = table.set_column(place, table.schema.field(column), pa.array(values))
    manifest = replace(recording.manifest, costs=costs)
    return Recording({**recording.tables, name: table}, manifest)


def times(recording):
    """Return the times of calls and work, in the order of the calls."""
    calls, work = recording.tables["api_calls"], recording.tables["activities"]
    order = np.argsort(work["correlation"].to_numpy(), kind="stable")
    return {
        "called": calls["time"].to_numpy(),
        "returned": calls["end"].to_numpy(),
        "began": work["time"].to_numpy()[order],
        "ended": work["end"].to_numpy()[order],
    }


def differences(one, other):
    one, other = times(one), times(other)
    return {name: int(np.abs(one[name] - other[name]).max(initial=0)) for name in one}


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


STEP = (("launch", 0, 4_000), ("launch", 0, 4_000), ("launch", 1, 4_000))
LAUNCH_BOUND = (("launch", 0, 2_000), ("work", 9_000)) * 120


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


def test_an_uncertain_cost_is_an_interval():
    interval = dict.fromkeys(KINDS, (1_000, TRACING_NS))

    cost = costly(LAUNCH_BOUND, interval).recording_cost()

    known = costly(LAUNCH_BOUND, ALL_KNOWN).recording_cost()
    assert cost.least_ns == known.compensated_ns
    assert cost.least_ns < cost.compensated_ns < cost.most_ns < cost.recorded_ns


def test_a_program_whose_launches_take_twice_as_long_as_measured_has_twice_the_cost():
    call_ns = 1_000
    halves = {kind: (low / 2, high / 2) for kind, (low, high) in ALL_KNOWN.items()}
    halves["launch_duration"] = ((TRACING_NS + call_ns) // 2,) * 2

    compensated = costly(LAUNCH_BOUND, halves).compensated()

    expected = recorded(LAUNCH_BOUND)
    assert differences(compensated, expected) == dict.fromkeys(times(expected), 0)


def test_launches_that_waited_for_a_full_queue_say_little_of_the_cost():
    """They take a thousand times as long as when the costs were measured; twice is believed."""
    costs = ALL_KNOWN | {"launch": (100, 100), "launch_duration": (1, 1)}

    cost = costly(LAUNCH_BOUND, costs).recording_cost()

    launches = sum(kind == "launch" for kind, *_ in [*FIRST, *LAUNCH_BOUND])
    assert cost.tracing_ns == launches * 200


def test_events_of_allocators_and_calls_without_a_row_cost_what_was_measured():
    recording = costly(STEP, ALL_KNOWN | {"memory_event": (100, 100), "other_calls": (10, 30)})

    cost, known = recording.recording_cost(), costly(STEP, ALL_KNOWN).recording_cost()

    calls, events = (recording.tables[each].num_rows for each in ("api_calls", "memory_events"))
    assert events > 0
    assert cost.own_ns == known.own_ns + events * 100
    assert cost.tracing_ns == known.tracing_ns + calls * 20


def test_a_launch_of_a_graph_costs_what_each_of_its_kernels_does():
    steps = (("graph", 0), ("wait",), ("graph", 1), ("work", 20_000), ("graph", 0))
    of_nodes = ALL_KNOWN | {"graph_node": (TRACING_NS // 2, TRACING_NS // 2)}  # of two

    compensated = costly(steps, of_nodes).compensated()

    assert differences(compensated, costly(steps, ALL_KNOWN).compensated()) == dict.fromkeys(
        times(compensated), 0
    )


@pytest.mark.parametrize("gap_ns", [300, 5_000])
def test_kernels_of_a_graph_follow_each_other_as_soon_as_without_recording(gap_ns):
    steps = (("graph", 0),)
    plain = recorded(steps)
    work, calls = plain.tables["activities"], plain.tables["api_calls"]
    is_last = np.arange(work.num_rows) == work.num_rows - 1
    # The last node begins later, and so does the end of the wait for it.
    later = {name: work[name].to_numpy() + gap_ns * is_last for name in ("time", "end")}
    returned = calls["end"].to_numpy().copy()
    returned[-1] += gap_ns
    costs = dict.fromkeys(ALL_KNOWN, (0, 0))
    late = with_columns(plain, "activities", later, costs)
    late = with_columns(late, "api_calls", {"end": returned}, costs)

    def with_gap(ns):
        return with_columns(late, "api_calls", {}, costs | {"graph_gap": (ns, ns)}).compensated()

    assert differences(with_gap(gap_ns), plain) == dict.fromkeys(times(plain), 0)
    # A kernel never begins before the end of the one before.
    assert differences(with_gap(9 * gap_ns), with_gap(10**6)) == dict.fromkeys(times(plain), 0)
    assert differences(with_gap(0), plain)["ended"] == gap_ns


def test_a_copy_to_the_host_costs_what_was_measured_of_it():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.launch("kernel", duration=1e-6)
        gpu.copy_to_host(gpu.empty(4096))
        gpu.synchronize()

    costs = dict.fromkeys(("launch", "synchronize"), (0, 0)) | {"copy": (300, 300)}
    older = as_costly(recorder.recording, costs).recording_cost()
    newer = as_costly(recorder.recording, costs | {"read_back": (900, 900)}).recording_cost()

    assert (older.tracing_ns, newer.tracing_ns) == (300, 900)


@pytest.mark.parametrize(
    ("call", "launches"),
    [
        ("cuModuleLoadData", 6),
        ("cuModuleUnload", 2),
        ("cuMemAlloc_v2", 4),
        ("cuMemFree_v2", 2),
        ("cuMemHostAlloc", 0),
    ],
)
def test_code_and_memory_of_the_driver_cost_as_much_as_several_launches(call, launches):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.launch("kernel", duration=1e-6)
        gpu.copy_to_host(gpu.empty(4096))
        gpu.synchronize()
    recording = recorder.recording
    strings = recording.tables["strings"]
    texts = [call if "DtoH" in each else each for each in strings["text"].to_pylist()]
    named = with_columns(recording, "strings", {"text": texts}, {})

    costs = {"launch": (300, 500), "synchronize": (0, 0)}

    # One launch, and what the pool gets from the driver.
    known = 1 + 4
    assert as_costly(named, costs).recording_cost().tracing_ns == 400 * (known + launches)


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
