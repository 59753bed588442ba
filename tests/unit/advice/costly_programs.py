"""Programs whose recording costs time."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

import gpuviz
from gpuviz.recording import Recording

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


STEP = (("launch", 0, 4_000), ("launch", 0, 4_000), ("launch", 1, 4_000))
LAUNCH_BOUND = (("launch", 0, 2_000), ("work", 9_000)) * 120
