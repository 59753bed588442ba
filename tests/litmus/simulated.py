"""Judges a litmus program by running it on the simulated GPU and judging the recording."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import gpuviz
from tests.litmus.devices import on_devices
from tests.litmus.host_memory import HostUse, with_host_memory
from tests.litmus.program import Operation, Program

if TYPE_CHECKING:
    from gpuviz.hazards.hazard import HazardOperation
    from gpuviz.recording import Recording
    from gpuviz.simulation.arrays import SimulatedArray
    from gpuviz.simulation.stream import SimulatedEvent, SimulatedGraph, SimulatedStream

# What the simulated GPU has no call for: parts of blocks, unknown and atomic accesses, captures of
# anything but kernels on one stream, value operations, stream-ordered memory.
_SUPPORTED = {
    "launch", "copy", "memset", "event_record", "stream_wait_event", "event_synchronize",
    "stream_synchronize", "device_synchronize", "event_query", "stream_query",
    "stream_create", "stream_destroy", "malloc", "free", "record_stream",
    "begin_capture", "end_capture", "graph_launch", "host_access",
}  # fmt: skip
_KERNEL_S = 1e-3
_LONG_S = 1.0

Pair = tuple[str, str, str]


def can_run(program: Program) -> bool:
    """Return whether the simulated GPU has a call for every operation."""
    per_thread = any(kind == "per_thread" for kind in program.streams.values())
    return (
        not (program.options or per_thread)
        and all(_is_supported(program, each) for each in program.operations)
        and _captures_kernels(program)
    )


def _captures_kernels(program: Program) -> bool:
    """Return whether captures are of kernels only."""
    capturing: set[str] = set()
    for each in program.operations:
        if each.op == "begin_capture":
            capturing.add(each.stream)
        elif each.op == "end_capture":
            capturing.discard(each.stream)
        elif each.fields.get("stream") in capturing and each.op not in ("launch", "malloc"):
            return False
    return True


def _is_supported(program: Program, operation: Operation) -> bool:
    if operation.op not in _SUPPORTED or operation.thread:
        return False
    fields = operation.fields
    if {"atomics", "unknown", "programmatic", "pool", "memory", "handle_of", "offset"} & set(
        fields
    ):
        return False
    if operation.op == "copy" and (operation.kind == "host_to_host"):
        return False
    if operation.op == "memset" and (operation.sync or _is_pinned(program, operation.destination)):
        return False
    places = [*fields.get("reads", ()), *fields.get("writes", ())]
    places += [
        place for graph in program.graphs.values() for each in graph.values() for place in each
    ]
    places += [fields[side] for side in ("source", "destination") if side in fields]
    modes = {mode for graph in program.graphs.values() for mode in graph}
    return modes <= {"reads", "writes"} and all(isinstance(place, str) for place in places)


def _is_pinned(program: Program, place: str) -> bool:
    return place in program.blocks and program.blocks[place][1]


def judge(program: Program) -> set[Pair]:
    """Return kind, first and second operation of each hazard of the recording."""
    run = _Run(program)
    for operation in program.operations:
        getattr(run, operation.op)(operation)
    return run.found()


class _Run:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.gpu = gpuviz.SimulatedGPU(real_time=False)
        self.recorder = gpuviz.record(device=self.gpu)
        self.recorder.start()
        self.streams: dict[str, SimulatedStream] = {"legacy": self.gpu.null_stream}
        self.events: dict[str, SimulatedEvent] = {}
        self.blocks: dict[str, SimulatedArray] = {}
        self.addresses: dict[str, int] = {}
        self.activities: list[str] = []
        self.frees: list[str] = []
        self.mallocs: list[str] = []
        self.graphs: dict[str, SimulatedGraph] = {}
        self.capturing: set[str] = set()
        self.host_copies: list[HostUse] = []
        self.host_accesses: list[HostUse] = []
        self.devices: dict[int, int] = {}
        self.legacy: list[int] = []
        self.synchronized: list[int] = []
        self.marker = self.gpu.Stream(non_blocking=True)
        for name, kind in program.streams.items():
            self.add_stream(name, kind, program.devices.get(name, 0))
        for name, (size, is_pinned) in program.blocks.items():
            if not is_pinned:
                self.mallocs.append(name)
                with self.first_stream(program.block_devices.get(name, 0)):
                    self.blocks[name] = self.gpu.empty(size)

        for name, lists in program.graphs.items():
            with self.gpu.Stream() as stream:
                stream.begin_capture()
                self.run_kernel(name, lists)
                self.graphs[name] = stream.end_capture()

    def found(self) -> set[Pair]:
        self.gpu.synchronize()
        self.recorder.stop()
        recording = self.recorder.recording
        if any(self.devices.values()):
            recording = on_devices(
                recording,
                self.devices,
                legacy=self.legacy,
                synchronized=[*self.synchronized, 0],
            )
        of_host: dict[int, str] = {}
        if self.host_copies or self.host_accesses:
            pinned = {name: size for name, (size, held) in self.program.blocks.items() if held}
            recording, of_host = with_host_memory(
                recording, pinned, self.host_copies, self.host_accesses, self._marks(recording)
            )
        calls = recording.tables["activities"]["correlation"].to_pylist()
        rank = {correlation: place for place, correlation in enumerate(sorted(set(calls)))}
        events = recording.tables["memory_events"]["action"].to_pylist()
        frees = [row for row, action in enumerate(events) if action == "free_requested"]
        mallocs = [row for row, action in enumerate(events) if action == "alloc"]

        def name(operation: "HazardOperation") -> str:
            if operation.is_of_host:
                return of_host[operation.stack]
            if operation.activity >= 0:
                return self.activities[rank[calls[operation.activity]]]
            if operation.event in mallocs:
                return self.mallocs[mallocs.index(operation.event)]
            return self.frees[frees.index(operation.event)]

        # Blocks of the program that it does not free end when the recording is read.
        return {(each.kind, name(each.first), name(each.second)) for each in recording.hazards()}

    def _marks(self, recording: "Recording") -> list[int]:
        """Return when the host accessed memory: it recorded an event on a stream of its own."""
        waits = recording.tables["synchronizations"].to_pylist()
        streams = recording.tables["streams"].to_pylist()
        (marker,) = (row["id"] for row in streams if row["handle"] == self.marker.ptr)
        calls = {
            row["correlation"]: row["time"] for row in recording.tables["api_calls"].to_pylist()
        }
        return [calls[row["correlation"]] for row in waits if row["stream"] == marker]

    def host_access(self, o: Operation) -> None:
        for mode in ("read", "write"):
            for block in o.fields.get(f"{mode}s", ()):
                place = len(self.host_accesses)
                self.host_accesses.append(HostUse(o.id, block, mode, place))
                self.marker.record(self.gpu.Event())

    def add_stream(self, name: str, kind: str, device: int) -> None:
        stream = self.streams[name] = self.gpu.Stream(non_blocking=kind == "non_blocking")
        self.devices[stream.ptr] = device
        if kind == "legacy":
            self.legacy.append(stream.ptr)

    def first_stream(self, device: int) -> "SimulatedStream":
        """Return the stream of a device that its memory is allocated on."""
        if not device:
            return self.streams["legacy"]
        return next(each for each in self.streams.values() if self.devices.get(each.ptr) == device)

    def stream(self, operation: Operation) -> "SimulatedStream":
        return self.streams[operation.stream]

    def event(self, operation: Operation) -> "SimulatedEvent":
        return self.events.setdefault(operation.event, self.gpu.Event())

    def launch(self, o: Operation) -> None:
        if o.stream not in self.capturing:
            self.activities.append(o.id)
        with self.stream(o):
            self.run_kernel(o.id, o.fields)

    def run_kernel(self, name: str, lists: Mapping[str, Any]) -> None:
        reads, writes = (
            [self.blocks[block] for block in lists.get(mode, ())] for mode in ("reads", "writes")
        )
        self.gpu.launch(name, reads=reads, writes=writes, duration=_KERNEL_S, share=0.1)

    def copy(self, o: Operation) -> None:
        self.activities.append(o.id)
        stream = self.streams["legacy"] if o.sync else self.stream(o)
        is_pinned = "pageable" not in (o.source, o.destination)
        host, mode = (o.source, "read") if o.kind == "host_to_device" else (o.destination, "write")
        if _is_pinned(self.program, host):
            self.host_copies.append(HostUse(o.id, host, mode, len(self.activities) - 1))
        with stream:
            if o.kind == "host_to_device":
                array = self.blocks[o.destination]
                self.gpu.copy_to_device(array, pinned=is_pinned, blocking=bool(o.sync))
            elif o.kind == "device_to_host":
                array = self.blocks[o.source]
                self.gpu.copy_to_host(array, pinned=is_pinned, blocking=bool(o.sync))
            else:
                self.gpu.copy(self.blocks[o.source], self.blocks[o.destination])

    def memset(self, o: Operation) -> None:
        self.activities.append(o.id)
        with self.stream(o):
            self.gpu.fill(self.blocks[o.destination])

    def event_record(self, o: Operation) -> None:
        self.stream(o).record(self.event(o))

    def stream_wait_event(self, o: Operation) -> None:
        self.stream(o).wait_event(self.event(o))

    def event_synchronize(self, o: Operation) -> None:
        self.event(o).synchronize()

    def stream_synchronize(self, o: Operation) -> None:
        self.stream(o).synchronize()

    def device_synchronize(self, o: Operation) -> None:
        self.synchronized.append(o.device or 0)
        self.gpu.synchronize()

    def event_query(self, o: Operation) -> None:
        self.query(o, self.event(o))

    def stream_query(self, o: Operation) -> None:
        self.query(o, self.stream(o))

    def query(self, o: Operation, queried: "SimulatedEvent | SimulatedStream") -> None:
        if o.complete:
            self.gpu.work_on_host(_LONG_S)
        assert queried.done == o.complete

    def stream_create(self, o: Operation) -> None:
        self.add_stream(o.stream, o.kind, o.device or 0)

    def stream_destroy(self, o: Operation) -> None:
        del self.streams[o.stream]

    def malloc(self, o: Operation) -> None:
        if o.reuses is not None:
            self.gpu.work_on_host(_LONG_S)  # until pending events have passed
        self.mallocs.append(o.id)
        with self.streams[o.stream or "legacy"]:
            self.blocks[o.block] = self.gpu.empty(o.bytes)
        self.addresses[o.block] = self.blocks[o.block].ptr
        assert o.reuses is None or self.addresses[o.block] == self.addresses[o.reuses]

    def free(self, o: Operation) -> None:
        self.frees.append(o.id)
        del self.blocks[o.block]

    def begin_capture(self, o: Operation) -> None:
        self.capturing.add(o.stream)
        self.stream(o).begin_capture()

    def end_capture(self, o: Operation) -> None:
        self.capturing.discard(o.stream)
        self.graphs[o.graph] = self.stream(o).end_capture()

    def graph_launch(self, o: Operation) -> None:
        self.activities.append(o.id)
        self.graphs[o.graph].launch(self.stream(o))

    def record_stream(self, o: Operation) -> None:
        self.gpu.record_stream(self.blocks[o.block], self.stream(o))
