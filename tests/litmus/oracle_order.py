"""Order of the actions of a litmus program: streams, events, waits and captures."""

from collections import defaultdict

from tests.litmus.layout import Layout
from tests.litmus.oracle_objects import (
    Accessed,
    Actions,
    Block,
    Capture,
    Doubt,
    Event,
    Graph,
    Stream,
)
from tests.litmus.program import Operation, Program


class Order:
    """The state of a program, and the operations that order its actions."""

    def __init__(self, program: Program) -> None:
        self.options = program.options
        self.actions = Actions()
        self.host: dict[int, int] = defaultdict(int)
        self.streams = {"legacy": Stream("legacy", "legacy")}
        self.all_streams = list(self.streams.values())
        self.events: dict[str, Event] = defaultdict(Event)
        self.blocks: dict[str, Block] = {}
        self.all_blocks: list[Block] = []
        self.graphs: dict[str, Graph] = {}
        self.captures: dict[str, Capture] = {}
        self.accesses: list[Accessed] = []
        self.written: dict[str, list[int]] = defaultdict(list)
        self.early_waits: dict[str, list[tuple[Stream, int]]] = defaultdict(list)
        self.doubts: list[Doubt] = []
        self.layout = Layout()
        self.required: dict[tuple[str, ...], set[int]] = defaultdict(set)
        self.possible: dict[tuple[str, ...], set[int]] = defaultdict(set)
        for name, kind in program.streams.items():
            self.add_stream(name, kind, program.devices.get(name, 0))
        for name, (size, is_pinned) in program.blocks.items():
            address = self.layout.place_new(name, size)
            self.add_block(Block(name, address, size, None, None, "cuda", is_pinned))

    def add_stream(self, name: str, kind: str, device: int) -> None:
        stream = Stream(name, "blocking" if kind == "per_thread" else kind, device)
        self.streams[name] = stream
        self.all_streams.append(stream)

    def add_block(self, block: Block) -> None:
        self.blocks[block.name] = block
        self.all_blocks.append(block)

    def owner(self, address: int) -> Block | None:
        for block in self.all_blocks:
            if block.is_live and block.address <= address < block.address + block.bytes:
                return block
        return None

    def thread(self, operation: Operation) -> int:
        return operation.thread if self.options.get("strict_threads") else 0

    def implicit(self, stream: Stream) -> int:
        """Return what rule 2 orders before the next action of a stream."""
        others = {"legacy": "blocking", "blocking": "legacy"}
        ordered = 0
        for each in self.all_streams:
            if each.device == stream.device and each.kind == others.get(stream.kind):
                ordered |= self.complete_of(each)
        return ordered

    def act(self, operation: Operation, stream: Stream, *, programmatic: bool = False) -> int:
        """Add an action to a stream."""
        earlier = stream.actions
        before = stream.waits | self.host[self.thread(operation)] | self.implicit(stream)
        if programmatic and earlier:
            before |= self.actions.upto(earlier[:-1]) | self.actions.before[earlier[-1]]
        else:
            before |= self.actions.upto(earlier)
        action = self.actions.add(before)
        stream.actions.append(action)
        return action

    def node(self, capture: Capture, name: str, *, programmatic: bool = False) -> int:
        """Add a node to a capture."""
        stream = capture.stream(name)
        before = stream.waits
        if programmatic and stream.actions:
            before |= capture.actions.upto(stream.actions[:-1])
            before |= capture.actions.before[stream.actions[-1]]
        else:
            before |= capture.actions.upto(stream.actions)
        action = capture.actions.add(before)
        stream.actions.append(action)
        return action

    def default_of(self, device: int) -> Stream:
        """Return the legacy stream of a device."""
        defaults = (each for each in self.all_streams if each.kind == "legacy")
        return next(each for each in defaults if each.device == device)

    def complete_of(self, stream: Stream) -> int:
        """Return what is complete when everything in a stream is."""
        return self.actions.upto(stream.actions) | stream.waits

    def complete(self, stream: Stream) -> int:
        """Return what a synchronization of a stream shows to be complete."""
        known = self.complete_of(stream)
        return known | self.implicit(stream) if stream.kind == "legacy" else known

    def synchronize(self, operation: Operation, stream: Stream) -> None:
        self.host[self.thread(operation)] |= self.complete(stream)

    def event_record(self, o: Operation) -> None:
        event = self.events[o.event]
        capture = self.captures.get(o.stream)
        if capture:
            event.capture = capture
            event.holds = self.node(capture, o.stream)
            event.holds = capture.actions.upto([event.holds])
            return
        action = self.act(o, self.streams[o.stream])
        event.capture, event.holds = None, self.actions.upto([action])

    def stream_wait_event(self, o: Operation) -> None:
        event, capture = self.events[o.event], self.captures.get(o.stream)
        if event.capture:
            if event.capture.is_open and capture in (None, event.capture):
                self.captures[o.stream] = event.capture
                self.node(event.capture, o.stream)
                event.capture.stream(o.stream).waits |= event.holds or 0
            return
        if capture or (event.holds is None and self.streams[o.stream].kind == "legacy"):
            return
        stream = self.streams[o.stream]
        action = self.act(o, stream)
        self.actions.before[action] |= event.holds or 0
        stream.waits |= event.holds or 0

    def event_synchronize(self, o: Operation) -> None:
        event = self.events[o.event]
        if not event.capture:
            self.host[self.thread(o)] |= event.holds or 0

    def event_query(self, o: Operation) -> None:
        if o.complete:
            self.event_synchronize(o)

    def event_destroy(self, o: Operation) -> None:
        self.events.pop(o.event, None)

    def stream_synchronize(self, o: Operation) -> None:
        self.synchronize(o, self.streams[o.stream])

    def stream_query(self, o: Operation) -> None:
        if o.complete:
            self.stream_synchronize(o)

    def device_synchronize(self, o: Operation) -> None:
        if all(each.device == 0 for each in self.all_streams):
            self.synchronize_everything(o)
            return
        for each in self.all_streams:
            if each.device == (o.device or 0):
                self.host[self.thread(o)] |= self.complete_of(each)

    def synchronize_everything(self, o: Operation) -> None:
        self.host[self.thread(o)] |= (1 << len(self.actions.before)) - 1

    def stream_create(self, o: Operation) -> None:
        self.add_stream(o.stream, o.kind, o.device or 0)

    def stream_destroy(self, o: Operation) -> None:
        del self.streams[o.stream]

    def write_value(self, o: Operation) -> None:
        self.written[o.address].append(self.act(o, self.streams[o.stream]))
        written = self.actions.upto(self.written[o.address])
        for stream, wait in self.early_waits.pop(o.address, []):
            stream.waits |= written
            self.doubts = [
                doubt
                for doubt in self.doubts
                if not (
                    doubt.first in stream.actions
                    and doubt.first > wait
                    and written >> doubt.second & 1
                )
            ]

    def wait_value(self, o: Operation) -> None:
        stream = self.streams[o.stream]
        action = self.act(o, stream)
        written = self.actions.upto(self.written[o.address])
        if not self.written[o.address]:
            written = (1 << action) - 1
            self.early_waits[o.address].append((stream, action))
        self.actions.before[action] |= written
