"""Judges a litmus program with the engine."""

from collections.abc import Callable, Iterable
from typing import Any

from gpuviz import _core
from tests.litmus.layout import Layout
from tests.litmus.program import Hazard, Operation, Place, Program, accesses_of, place_of

_Access = tuple[int, _core.HazardMode, int, int | None]
_Place = tuple[int, int, int | None] | None


def judge(program: Program) -> list[Hazard]:
    """Return the hazards that the engine reports.

    Raises:
        ValueError: An operation names something that does not exist, or no longer.
    """
    try:
        run = _Run(program)
    except KeyError as error:
        raise ValueError(f"program {program.name}: {error.args[0]!r} does not exist") from None
    for place, operation in enumerate(program.operations):
        try:
            run.perform(operation)
        except (ValueError, KeyError) as error:
            text = f"{error.args[0]!r} does not exist" if isinstance(error, KeyError) else error
            raise ValueError(
                f"program {program.name}: operation {place}, {operation.op}: {text}"
            ) from None
    return run.found()


class _Run:
    def __init__(self, program: Program) -> None:
        self.engine = _core.HazardEngine(**program.options)
        self.layout = Layout()
        self.streams = {"legacy": 0}
        self.events: dict[str, int] = {}
        self.blocks: dict[str, int] = {}
        self.block_names: dict[int, str] = {}
        self.live: set[str] = set()
        self.pinned: set[str] = set()
        self.graphs: dict[str, int] = {}
        self.addresses: dict[str, int] = {}
        self.ids: list[str] = []
        for name, kind in program.streams.items():
            self.create_stream(name, kind, program.devices[name])
        for name, (size, is_pinned) in program.blocks.items():
            address = self.layout.place_new(name, size)
            self.add_block(name, (0, "cuda", address, size), is_pinned=is_pinned)
        for name, lists in program.graphs.items():
            self.graphs[name] = self.engine.create_graph(self.accesses(accesses_of(lists)))

    def found(self) -> list[Hazard]:
        return [
            Hazard(
                kind.name,
                self.ids[first - 1],
                self.ids[second - 1],
                self.block_names[block],
                tier.name,
                tuple(spans),
            )
            for kind, tier, first, second, block, _, spans in self.engine.take()
        ]

    def create_stream(self, name: str, kind: str, device: int) -> None:
        blocking, other = _core.HazardStreamKind.blocking, _core.HazardStreamKind.non_blocking
        if name in self.streams:
            raise ValueError(f"the stream {name!r} exists already")
        if kind == "legacy":
            self.streams[name] = self.engine.legacy_stream(device)
            return
        self.streams[name] = self.engine.create_stream(
            other if kind == "non_blocking" else blocking, device
        )

    def add_block(self, name: str, allocation: tuple[Any, ...], *, is_pinned: bool) -> None:
        if name in self.live:
            raise ValueError(f"the block {name!r} exists already")
        number, allocator, *where = allocation
        memory = _core.HazardMemory["pinned" if is_pinned else "device"]
        block = self.engine.allocate(number, _core.HazardAllocator[allocator], memory, *where)
        self.blocks[name], self.block_names[block] = block, name
        self.live.add(name)

    def number(self, operation: Operation) -> int:
        """Return a new operation's number."""
        if operation.id in self.ids:
            raise ValueError(f"the id {operation.id!r} is used twice")
        self.ids.append(operation.id)
        return len(self.ids)

    def event(self, name: str) -> int:
        if name not in self.events:
            self.events[name] = self.engine.create_event()
        return self.events[name]

    def stop(self, place: Place) -> int | None:
        return self.layout.bytes[place.block] if place.stop == -1 else place.stop

    def accesses(self, entries: Iterable[tuple[str, Place]]) -> list[_Access]:
        return [
            (self.blocks[place.block], _core.HazardMode[mode], place.start, self.stop(place))
            for mode, place in entries
        ]

    def place(self, entry: object) -> _Place:
        if entry == "pageable":
            return None
        place = place_of(entry)
        return self.blocks[place.block], place.start, self.stop(place)

    def perform(self, operation: Operation) -> None:
        _PERFORM[operation.op](self, operation)

    def stream_of(self, operation: Operation) -> int:
        return self.streams[operation.stream]

    def launch(self, o: Operation) -> None:
        self.engine.launch(
            self.number(o),
            self.accesses(o.accesses()),
            self.stream_of(o),
            o.thread,
            bool(o.programmatic),
        )

    def copy(self, o: Operation) -> None:
        stream = None if o.sync else self.stream_of(o)
        kind = _core.HazardCopyKind[o.kind]
        sides = self.place(o.source), self.place(o.destination)
        self.engine.copy(self.number(o), kind, *sides, stream, o.thread, o.peer)

    def memset(self, o: Operation) -> None:
        stream = None if o.sync else self.stream_of(o)
        self.engine.memset(self.number(o), self.place(o.destination), stream, o.thread)

    def host_access(self, o: Operation) -> None:
        self.engine.host_access(self.number(o), self.accesses(o.accesses()), o.thread)

    def event_record(self, o: Operation) -> None:
        self.engine.record_event(o.thread, self.event(o.event), self.stream_of(o))

    def stream_wait_event(self, o: Operation) -> None:
        self.engine.wait_event(o.thread, self.stream_of(o), self.event(o.event))

    def event_synchronize(self, o: Operation) -> None:
        self.engine.synchronize_event(o.thread, self.event(o.event))

    def event_destroy(self, o: Operation) -> None:
        self.engine.destroy_event(self.event(o.event))
        del self.events[o.event]

    def event_query(self, o: Operation) -> None:
        event = self.event(o.event)
        if o.complete:
            self.engine.synchronize_event(o.thread, event)

    def stream_synchronize(self, o: Operation) -> None:
        self.engine.synchronize_stream(o.thread, self.stream_of(o))

    def stream_query(self, o: Operation) -> None:
        stream = self.stream_of(o)
        if o.complete:
            self.engine.synchronize_stream(o.thread, stream)

    def device_synchronize(self, o: Operation) -> None:
        self.engine.synchronize_device(o.thread, o.device or 0)

    def stream_create(self, o: Operation) -> None:
        if o.handle_of in self.streams:
            raise ValueError(f"the stream {o.handle_of!r} has not been destroyed")
        self.create_stream(o.stream, o.kind, o.device or 0)

    def stream_destroy(self, o: Operation) -> None:
        self.engine.destroy_stream(self.streams.pop(o.stream))

    def malloc(self, o: Operation) -> None:
        allocator = "caching" if o.pool is None else "private_pool"
        stream = self.streams[o.stream or "legacy"]
        where = (self.layout.place(o), o.bytes, stream, o.thread)
        is_pinned = o.memory == "pinned"
        self.add_block(o.block, (self.number(o), allocator, *where), is_pinned=is_pinned)

    def malloc_async(self, o: Operation) -> None:
        where = (self.layout.place(o), o.bytes, self.stream_of(o), o.thread)
        self.add_block(o.block, (self.number(o), "stream_ordered", *where), is_pinned=False)

    def cuda_malloc(self, o: Operation) -> None:
        where = (self.layout.place(o), o.bytes, 0, o.thread)
        self.add_block(o.block, (0, "cuda", *where), is_pinned=o.memory == "pinned")

    def free(self, o: Operation) -> None:
        self.engine.free(self.number(o), o.thread, self.ended(o))

    def free_async(self, o: Operation) -> None:
        self.engine.free_async(self.number(o), o.thread, self.ended(o), self.stream_of(o))

    def cuda_free(self, o: Operation) -> None:
        self.engine.cuda_free(o.thread, self.ended(o))

    def ended(self, operation: Operation) -> int:
        self.live.discard(operation.block)
        return self.blocks[operation.block]

    def record_stream(self, o: Operation) -> None:
        self.engine.record_stream(self.blocks[o.block], self.stream_of(o))

    def begin_capture(self, o: Operation) -> None:
        self.engine.begin_capture(self.stream_of(o))

    def end_capture(self, o: Operation) -> None:
        self.graphs[o.graph] = self.engine.end_capture(self.stream_of(o))

    def instantiate(self, o: Operation) -> None:
        self.graphs[o.graph] = self.engine.instantiate(self.graphs[o.of])

    def graph_launch(self, o: Operation) -> None:
        graph = self.graphs[o.graph]
        self.engine.launch_graph(self.number(o), o.thread, graph, self.stream_of(o))

    def value_address(self, name: str) -> int:
        return self.addresses.setdefault(name, len(self.addresses))

    def write_value(self, o: Operation) -> None:
        self.engine.write_value(o.thread, self.stream_of(o), self.value_address(o.address))

    def wait_value(self, o: Operation) -> None:
        self.engine.wait_value(o.thread, self.stream_of(o), self.value_address(o.address))


_PERFORM: dict[str, Callable[[_Run, Operation], None]] = {
    method.__name__: method
    for method in (
        _Run.launch, _Run.copy, _Run.memset, _Run.host_access, _Run.event_record,
        _Run.stream_wait_event, _Run.event_synchronize, _Run.event_destroy, _Run.event_query,
        _Run.stream_synchronize, _Run.stream_query, _Run.device_synchronize, _Run.stream_create,
        _Run.stream_destroy, _Run.malloc, _Run.malloc_async, _Run.cuda_malloc, _Run.free,
        _Run.free_async, _Run.cuda_free, _Run.record_stream, _Run.begin_capture, _Run.end_capture,
        _Run.instantiate, _Run.graph_launch, _Run.write_value, _Run.wait_value,
    )
}  # fmt: skip
