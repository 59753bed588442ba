"""Random programs on the simulated GPU against a scheduler in plain Python."""

from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz import _core
from gpuviz.data import tables
from tests.examples import examples
from tests.unit.simulation.brute_force import BruteForce

KINDS = ["default", "blocking", "blocking", "non_blocking", "non_blocking"]
PRIORITIES = [0, 0, -1, 0, -2]
EVENTS = 3
GRAPHS = [[("g0", 5000, 132)], [("g1", 3000, 33), ("g2", 4000, 66), ("g3", 700, 1)]]

streams = st.integers(0, len(KINDS) - 1)
events = st.integers(0, EVENTS - 1)
sizes = st.sampled_from([1, 4096, 64 << 10, (64 << 10) + 1, 1_000_000])
copies = st.sampled_from(["host_to_device", "device_to_host", "device_to_device"])
launches = st.tuples(
    st.just("launch"),
    streams,
    st.integers(1, 60_000),
    st.sampled_from([1, 33, 66, 132]),
)
operations = st.one_of(
    launches,
    launches,
    launches,
    st.tuples(st.just("copy"), streams, copies, sizes, st.booleans(), st.booleans()),
    st.tuples(st.just("fill"), streams, sizes),
    st.tuples(st.just("record"), events, streams),
    st.tuples(st.just("wait_event"), streams, events),
    st.tuples(st.just("synchronize_stream"), streams),
    st.tuples(st.just("synchronize_event"), events),
    st.tuples(st.just("synchronize")),
    st.tuples(st.just("work_on_host"), st.integers(1, 100_000)),
    st.tuples(st.just("graph"), streams, st.integers(0, len(GRAPHS) - 1)),
    st.tuples(st.just("replace"), st.integers(1, len(KINDS) - 1)),
)


class Simulated:
    """Executes and records operations on a new simulated GPU."""

    def __init__(self):
        self.gpu = gpuviz.SimulatedGPU(real_time=False)
        self.native = self.gpu._native
        self.session = _core.Session(stack_depth=0)
        self.session.start()
        self.native.attach(self.session)
        self.streams = [self.gpu.null_stream, *map(self.new_stream, range(1, len(KINDS)))]
        self.events = [self.gpu.Event() for _ in range(EVENTS)]
        self.graphs = [self.new_graph(kernels) for kernels in GRAPHS]
        self.began = self.native.now_ns - self.session.start_ns

    def new_stream(self, slot):
        non_blocking = KINDS[slot] == "non_blocking"
        return self.gpu.Stream(non_blocking=non_blocking, priority=PRIORITIES[slot])

    def new_graph(self, kernels):
        capture = self.native.begin_capture(0)
        for name, duration, share in kernels:
            kernel = _core.GpuKernel(name=name, duration_ns=duration, multiprocessors=share)
            self.native.capture(capture, kernel)
        return self.native.end_capture(capture)

    def replace(self, slot):
        self.streams[slot] = None
        self.streams[slot] = self.new_stream(slot)

    def launch(self, number, slot, duration, share):
        kernel = _core.GpuKernel(name=f"k{number}", duration_ns=duration, multiprocessors=share)
        self.streams[slot].launch(kernel)

    def copy(self, slot, kind, nbytes, pinned, blocking):
        known = tables.DICTIONARIES["activities", "copy_kind"].index(kind)
        stream = self.streams[slot].ptr
        self.native.copy(stream, known, nbytes, pinned=pinned, blocking=blocking)

    def run(self, number, operation, *arguments):
        if operation in {"launch", "copy", "replace"}:
            numbered = (number, *arguments) if operation == "launch" else arguments
            getattr(self, operation)(*numbered)
        elif operation == "synchronize":
            self.gpu.synchronize()
        elif operation == "synchronize_event":
            self.events[arguments[0]].synchronize()
        elif operation == "record":
            self.events[arguments[0]].record(self.streams[arguments[1]])
        elif operation == "work_on_host":
            self.gpu.work_on_host(arguments[0] * 1e-9)
        else:
            self.run_on_stream(operation, self.streams[arguments[0]], *arguments[1:])

    def run_on_stream(self, operation, stream, *arguments):
        if operation == "fill":
            self.native.fill(stream.ptr, 0, *arguments)
        elif operation == "wait_event":
            stream.wait_event(self.events[arguments[0]])
        elif operation == "synchronize_stream":
            stream.synchronize()
        else:
            self.native.launch_graph(stream.ptr, self.graphs[arguments[0]])

    def finish(self):
        """Return activities, times of event records, and calls, by time since the start."""
        self.native.detach()
        self.session.stop()
        chunks = self.session.take_tables(flush=True)
        rows = {
            name: [
                dict(zip(chunk, row, strict=True))
                for chunk in chunks[name]
                for row in zip(*(column.tolist() for column in chunk.values()), strict=True)
            ]
            for name in ("activities", "synchronizations", "api_calls")
        }
        names = ["", *self.session.strings(1)]
        kinds = tables.DICTIONARIES["activities", "kind"]
        activities = sorted(
            (
                row["time"] - self.began,
                row["end"] - self.began,
                kinds[row["kind"]],
                names[row["name"]],
                row["bytes"],
            )
            for row in rows["activities"]
        )
        records = sorted(
            row["time"] - self.began for row in rows["synchronizations"] if row["kind"] == 0
        )
        calls = [
            (names[row["name"]], row["time"] - self.began, row["end"] - self.began)
            for row in rows["api_calls"]
            if row["time"] >= self.began
        ]
        return activities, records, calls


class Expected:
    """The same operations by brute force."""

    def __init__(self):
        self.host = BruteForce(dict(enumerate(KINDS)), dict(enumerate(PRIORITIES)))
        self.streams = list(range(len(KINDS)))
        self.graphs = [[] for _ in GRAPHS]

    def run(self, number, operation, *arguments):
        host = self.host
        if operation == "work_on_host":
            host.now += arguments[0]
        elif operation == "replace":
            self.replace(*arguments)
        elif operation == "copy":
            slot, kind, nbytes, pinned, blocking = arguments
            short = {"host_to_device": "HtoD", "device_to_host": "DtoH", "device_to_device": "DtoD"}
            name = f"cuMemcpy{short[kind]}{'' if blocking else 'Async'}_v2"
            stream = self.streams[slot]
            host.call(
                name, lambda: host.copy(stream, kind, nbytes, pinned=pinned, blocking=blocking)
            )
        elif operation == "synchronize":
            host.call("cuCtxSynchronize", lambda: host.wait_for(host.works))
        elif operation == "synchronize_event":
            host.call("cuEventSynchronize", lambda: host.synchronize_event(*arguments))
        elif operation == "record":
            event, slot = arguments
            host.call("cuEventRecord", lambda: host.record(event, self.streams[slot]))
        else:
            self.run_on_stream(number, operation, self.streams[arguments[0]], *arguments[1:])

    def run_on_stream(self, number, operation, stream, *arguments):
        host = self.host
        if operation == "launch":
            host.call("cuLaunchKernel", lambda: host.launch(stream, f"k{number}", *arguments))
        elif operation == "fill":
            host.call("cuMemsetD8Async", lambda: host.fill(stream, *arguments))
        elif operation == "wait_event":
            host.call("cuStreamWaitEvent", lambda: host.wait_event(stream, *arguments))
        elif operation == "synchronize_stream":
            host.call("cuStreamSynchronize", lambda: host.synchronize_stream(stream))
        else:
            [graph] = arguments
            host.call("cuGraphLaunch", lambda: self.launch_graph(stream, graph))

    def launch_graph(self, stream, graph):
        self.graphs[graph] = self.host.graph(stream, GRAPHS[graph], self.graphs[graph])

    def replace(self, slot):
        self.host.call("cuStreamDestroy_v2", lambda: None)
        self.host.call("cuStreamCreateWithPriority", lambda: None)
        self.streams[slot] = new = len(self.host.kinds)
        self.host.kinds[new] = KINDS[slot]
        self.host.priorities[new] = PRIORITIES[slot]

    def finish(self):
        return *self.host.finish(), self.host.calls


@examples(80)
@given(st.integers(0, 40).flatmap(lambda size: st.lists(operations, min_size=size, max_size=size)))
def test_every_activity_event_and_call_of_a_program_is_when_the_rules_say(program):
    simulated, expected = Simulated(), Expected()

    for number, operation in enumerate(program):
        simulated.run(number, *operation)
        expected.run(number, *operation)

    assert simulated.finish() == expected.finish()
