"""Judges a litmus program by brute force, as slowly and as plainly as the rules are written.

Sets of actions are integers, one bit for each action. Every pair of accesses is compared, byte by
byte. Not optimized and not shared with the engine on purpose.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.litmus.layout import Layout
from tests.litmus.program import Hazard, Operation, Program, accesses_of, place_of

# The strongest mode of an operation at a byte, whether its extent is known, and where accesses of
# unknown extent begin.
ByteAccess = tuple[str, bool, frozenset[int]]
STRENGTH = ("read", "unknown", "atomic", "write")


@dataclass
class Block:
    """One allocation."""

    name: str
    address: int
    bytes: int
    allocated_by: str | None
    stream: str | None
    how: str
    is_pinned: bool = False
    is_live: bool = True
    freed_by: str | None = None
    freed_async: bool = False
    allocation: int | None = None
    recorded: list[str] = field(default_factory=list)
    events: int = 0
    free_action: int = 0


@dataclass
class Stream:
    """One stream, in a program or in a capture."""

    name: str
    kind: str
    device: int = 0
    actions: list[int] = field(default_factory=list)
    waits: int = 0


@dataclass
class Accessed:
    """An operation that accessed a block."""

    id: str
    action: int
    where: str
    block: Block
    bytes: dict[int, ByteAccess]


@dataclass
class Doubt:
    """A conflict whose first operation waits for a value that may be written after the second."""

    key: tuple[str, ...]
    byte: int
    is_required: bool
    first: int
    second: int


@dataclass
class Event:
    """What an event holds: actions of the program, or of a capture."""

    holds: int | None = None
    capture: "Capture | None" = None


class Actions:
    """Actions, and which of them are ordered before each."""

    def __init__(self) -> None:
        self.before: list[int] = []

    def add(self, before: int) -> int:
        """Add an action; return its number."""
        self.before.append(self.closed(before))
        return len(self.before) - 1

    def closed(self, actions: int) -> int:
        """Return actions and everything ordered before them."""
        closed = actions
        for each in bits(actions):
            closed |= self.before[each]
        return closed

    def upto(self, actions: Iterable[int]) -> int:
        """Return the set of some actions and everything ordered before them."""
        return self.closed(sum(1 << each for each in actions))


@dataclass
class Capture:
    """A capture in progress, and its nodes."""

    origin: str
    actions: Actions = field(default_factory=Actions)
    streams: dict[str, Stream] = field(default_factory=dict)
    accesses: list[Accessed] = field(default_factory=list)
    is_open: bool = True

    def stream(self, name: str) -> Stream:
        return self.streams.setdefault(name, Stream(name, "non_blocking"))


@dataclass
class Graph:
    """An executable graph."""

    accesses: list[tuple[Block, dict[int, ByteAccess]]]
    launches: list[int] = field(default_factory=list)


def bits(actions: int) -> Iterator[int]:
    """Yield the actions of a set."""
    while actions:
        lowest = actions & -actions
        yield lowest.bit_length() - 1
        actions ^= lowest


def judge(program: Program) -> tuple[list[Hazard], list[Hazard]]:
    """Return the hazards that must be reported, and those that may be besides."""
    oracle = Oracle(program)
    for operation in program.operations:
        getattr(oracle, operation.op)(operation)
    return oracle.verdict()


class Oracle:
    """The state of a program."""

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
        for name, lists in program.graphs.items():
            self.graphs[name] = Graph(list(self.by_block(accesses_of(lists))))

    def verdict(self) -> tuple[list[Hazard], list[Hazard]]:
        """Return what must be reported, and what may be."""
        for doubt in self.doubts:
            self.add(doubt.key, doubt.byte, is_required=doubt.is_required)
        return _hazards(self.required), _hazards(self.possible)

    def add(self, key: tuple[str, ...], byte: int, *, is_required: bool = True) -> None:
        (self.required if is_required else self.possible)[key].add(byte)

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

    # Order.

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

    # Accesses.

    def by_block(
        self, accesses: Iterable[tuple[str, Any]]
    ) -> Iterator[tuple[Block, dict[int, ByteAccess]]]:
        """Yield each block, and the strongest access to each of its bytes, by address."""
        found: dict[str, dict[int, list[tuple[str, int | None]]]] = {}
        for mode, place in accesses:
            block = self.blocks[place.block]
            stop = block.bytes if place.stop in (-1, None) else place.stop
            begin = block.address + place.start if place.stop is None else None
            of_block = found.setdefault(place.block, defaultdict(list))
            for byte in range(place.start, stop):
                of_block[block.address + byte].append((mode, begin))
        for name, of_block in found.items():
            yield self.blocks[name], {byte: _strongest(all_) for byte, all_ in of_block.items()}

    def access(
        self, operation: Operation, where: str, accesses: Iterable[tuple[str, Any]], **options: bool
    ) -> None:
        """Perform an operation that accesses memory in a stream."""
        self.perform(operation, where, list(self.by_block(accesses)), **options)

    def perform(
        self,
        operation: Operation,
        where: str,
        accesses: list[tuple[Block, dict[int, ByteAccess]]],
        *,
        programmatic: bool = False,
    ) -> None:
        capture = self.captures.get(where)
        if capture:
            action = self.node(capture, where, programmatic=programmatic)
            before, past = capture.actions.before[action], capture.accesses
        else:
            action = self.act(operation, self.streams[where], programmatic=programmatic)
            before, past = self.actions.before[action], self.accesses
        known = None if capture else action
        self.compare(operation, accesses, before, past, known, is_real=capture is None)
        past.extend(Accessed(operation.id, action, where, *each) for each in accesses)

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

    def compare(  # noqa: PLR0913 - an operation, and what it is compared with
        self,
        operation: Operation,
        accesses: list[tuple[Block, dict[int, ByteAccess]]],
        before: int,
        past: list[Accessed],
        action: int | None,
        *,
        is_real: bool,
    ) -> None:
        """Report the conflicts of an operation with all earlier accesses."""
        for block, of_bytes in accesses:
            for number, first in enumerate(past):
                if before >> first.action & 1:
                    continue
                for byte in first.bytes.keys() & of_bytes.keys():
                    a, b = first.bytes[byte], of_bytes[byte]
                    if not _conflict(a, b):
                        continue
                    kind = _kind(a[0], b[0])
                    if first.block is not block and (first.block.is_live or block.is_live):
                        kind = "reuse"
                    tier = "certain" if _is_known(a) and _is_known(b) else "probable"
                    key = (kind, first.id, operation.id, block.name, tier)
                    is_required = not _is_superseded(first, byte, past[number + 1 :])
                    at = byte - block.address
                    if action is not None and self.waits_early(first.action):
                        self.doubts.append(Doubt(key, at, is_required, first.action, action))
                    else:
                        self.add(key, at, is_required=is_required)
            if is_real:
                self.check_lifetime(operation, block, of_bytes, before)

    def waits_early(self, action: int) -> bool:
        """Return whether an action runs after a value that was not written before the wait."""
        waits = (each for of_address in self.early_waits.values() for each in of_address)
        return any(action in stream.actions and action > wait for stream, wait in waits)

    def check_lifetime(
        self, operation: Operation, block: Block, of_bytes: Iterable[int], before: int
    ) -> None:
        for byte in of_bytes:
            at = byte - block.address
            if block.allocation is not None and not before >> block.allocation & 1:
                allocated = (block.allocated_by or "", operation.id, block.name, "certain")
                self.add(("use_before_alloc", *allocated), at)
            if block.freed_async:
                freed = (block.freed_by or "", operation.id, block.name, "certain")
                self.add(("use_after_free", *freed), at)

    def launch(self, o: Operation) -> None:
        self.access(o, o.stream, o.accesses(), programmatic=bool(o.programmatic))

    def copy(self, o: Operation) -> None:
        where = "legacy" if o.sync else o.stream
        stream = self.streams[where]
        if o.sync and o.kind == "host_to_device" and o.source == "pageable":
            self.synchronize(o, stream)
        sides = (("read", o.source), ("write", o.destination))
        places = [(mode, place_of(side)) for mode, side in sides if side != "pageable"]
        is_captured = where in self.captures
        peer = None
        if o.peer not in {None, stream.device} and stream.kind == "legacy" and not is_captured:
            # In the default streams of both devices.
            peer = self.default_of(o.peer)
            self.act(o, peer)
            stream.waits |= self.complete_of(peer)
        self.access(o, where, places)
        if peer is not None:
            peer.waits |= self.complete_of(stream)
        if is_captured:
            return
        blocks = self.options.get("pageable_download_blocks") and o.destination == "pageable"
        known = {
            "host_to_host": True,
            "device_to_host": bool(o.sync or blocks),
            "host_to_device": bool(o.sync and o.source != "pageable"),
            "device_to_device": False,
        }
        if known[o.kind]:
            self.synchronize(o, stream)

    def memset(self, o: Operation) -> None:
        place = place_of(o.destination)
        where = "legacy" if o.sync else o.stream
        self.access(o, where, [("write", place)])
        if o.sync and self.blocks[place.block].is_pinned:
            self.synchronize(o, self.streams[where])

    def host_access(self, o: Operation) -> None:
        accesses = list(self.by_block(o.accesses()))
        known = self.host[self.thread(o)]
        self.compare(o, accesses, known, self.accesses, None, is_real=True)
        action = self.actions.add(known)
        self.host[self.thread(o)] |= 1 << action
        where = f"host {self.thread(o)}"
        self.accesses.extend(Accessed(o.id, action, where, *each) for each in accesses)

    # Allocators.

    def new_block(self, o: Operation, how: str, stream: str | None) -> Block:
        block = Block(o.block, self.layout.place(o), o.bytes, o.fields.get("id"), stream, how)
        block.is_pinned = o.fields.get("memory") == "pinned"
        return block

    def previous_owners(self, block: Block) -> list[Block]:
        """Return the last owner of each byte of a new block."""
        last: dict[int, Block] = {}
        for each in self.all_blocks:
            for byte in range(each.address, each.address + each.bytes):
                if block.address <= byte < block.address + block.bytes:
                    last[byte] = each
        return list(last.values())

    def malloc(self, o: Operation) -> None:
        block = self.new_block(o, "private" if o.pool else "caching", o.stream or "legacy")
        for owner in self.previous_owners(block):
            self.host[self.thread(o)] |= owner.events
        self.add_block(block)

    def cuda_malloc(self, o: Operation) -> None:
        block = self.new_block(o, "cuda", None)
        for owner in self.previous_owners(block):
            self.host[self.thread(o)] |= owner.events
        self.add_block(block)

    def malloc_async(self, o: Operation) -> None:
        block = self.new_block(o, "async", o.stream)
        stream = self.streams[o.stream]
        block.allocation = self.act(o, stream)
        for owner in self.previous_owners(block):
            self.actions.before[block.allocation] |= owner.free_action
        self.add_block(block)

    def record_stream(self, o: Operation) -> None:
        self.blocks[o.block].recorded.append(o.stream)

    def free(self, o: Operation) -> None:
        block = self.blocks[o.block]
        for name in dict.fromkeys(block.recorded):
            if name in self.captures or name not in self.streams:
                streams = [each for each in self.all_streams if each.name == name]
                block.events |= self.complete_of(streams[-1])
            else:
                block.events |= self.actions.upto([self.act(o, self.streams[name])])
        if block.is_pinned:
            safe = self.host[self.thread(o)]
        else:
            of_name = [each for each in self.all_streams if each.name == block.stream]
            stream = of_name[-1]
            safe = self.host[self.thread(o)] | self.complete_of(stream) | self.implicit(stream)
        self.check_free(o, block, safe | block.events, "latent")
        block.is_live, block.freed_by = False, o.id

    def check_free(self, o: Operation, block: Block, safe: int, tier: str) -> None:
        for number, first in enumerate(self.accesses):
            if first.block is not block or safe >> first.action & 1:
                continue
            for byte in first.bytes:
                key = ("use_after_free", first.id, o.id, block.name, tier)
                is_required = not _is_superseded(first, byte, self.accesses[number + 1 :])
                self.add(key, byte - block.address, is_required=is_required)

    def free_async(self, o: Operation) -> None:
        block = self.blocks[o.block]
        action = self.act(o, self.streams[o.stream])
        before = self.actions.before[action]
        if block.allocation is not None and not before >> block.allocation & 1:
            key = ("use_before_alloc", block.allocated_by or "", o.id, block.name, "certain")
            for byte in range(block.bytes):
                self.add(key, byte)
        self.check_free(o, block, before, "certain")
        block.is_live, block.freed_by, block.freed_async = False, o.id, True
        block.free_action = self.actions.upto([action])

    def cuda_free(self, o: Operation) -> None:
        if self.options.get("cuda_free_synchronizes", True):
            self.synchronize_everything(o)
        self.blocks[o.block].is_live = False

    # Graphs.

    def begin_capture(self, o: Operation) -> None:
        self.captures[o.stream] = Capture(o.stream)

    def end_capture(self, o: Operation) -> None:
        capture = self.captures[o.stream]
        capture.is_open = False
        self.captures = {name: each for name, each in self.captures.items() if each is not capture}
        self.graphs[o.graph] = Graph(_union(capture.accesses))

    def instantiate(self, o: Operation) -> None:
        self.graphs[o.graph] = Graph(self.graphs[o.of].accesses)

    def graph_launch(self, o: Operation) -> None:
        graph = self.graphs[o.graph]
        if o.stream in self.captures:
            self.perform(o, o.stream, graph.accesses)
            return
        stream = self.streams[o.stream]
        action = self.act(o, stream)
        self.actions.before[action] |= self.actions.upto(graph.launches)
        before = self.actions.before[action]
        self.compare(o, graph.accesses, before, self.accesses, action, is_real=True)
        for block, of_bytes in graph.accesses:
            self.check_owner(o, block, of_bytes)
        graph.launches.append(action)
        self.accesses.extend(Accessed(o.id, action, o.stream, *each) for each in graph.accesses)

    def check_owner(self, o: Operation, block: Block, of_bytes: Mapping[int, ByteAccess]) -> None:
        if block.is_live or block.how == "private":
            return
        for byte, access in of_bytes.items():
            at = byte - block.address
            owner = self.owner(byte)
            if owner is None:
                if block.freed_by is not None and not block.freed_async:
                    self.add(("use_after_free", block.freed_by, o.id, block.name, "latent"), at)
                continue
            if owner.allocated_by is None:
                continue
            is_certain = _is_known(access) or owner.how == "async"
            tier = "certain" if is_certain else "probable"
            self.add(("reuse", owner.allocated_by, o.id, block.name, tier), at)


def _strongest(accesses: list[tuple[str, int | None]]) -> ByteAccess:
    mode = max((mode for mode, _ in accesses), key=STRENGTH.index)
    begins = [begin for each, begin in accesses if each == mode]
    is_exact = None in begins
    pointers = frozenset() if is_exact else frozenset(each for each in begins if each is not None)
    return mode, is_exact, pointers


def _union(accesses: list[Accessed]) -> list[tuple[Block, dict[int, ByteAccess]]]:
    found: dict[int, tuple[Block, dict[int, list[ByteAccess]]]] = {}
    for each in accesses:
        _, of_block = found.setdefault(id(each.block), (each.block, defaultdict(list)))
        for byte, access in each.bytes.items():
            of_block[byte].append(access)
    return [
        (block, {byte: _strongest_of(all_) for byte, all_ in of_block.items()})
        for block, of_block in found.values()
    ]


def _strongest_of(accesses: list[ByteAccess]) -> ByteAccess:
    plain = [
        (mode, begin)
        for mode, is_exact, pointers in accesses
        for begin in ([None] if is_exact else pointers)
    ]
    return _strongest(plain)


def _conflict(first: ByteAccess, second: ByteAccess) -> bool:
    modes = {first[0], second[0]}
    if modes in ({"read"}, {"atomic"}, {"unknown"}):
        return False
    return first[1] or second[1] or bool(first[2] & second[2])


def _kind(first: str, second: str) -> str:
    if second == "read":
        return "RAW"
    return "WAR" if first == "read" else "WAW"


def _is_known(access: ByteAccess) -> bool:
    return access[1] and access[0] != "unknown"


def _is_superseded(first: Accessed, byte: int, between: list[Accessed]) -> bool:
    mode = first.bytes[byte][0]
    for each in between:
        if each.id == first.id or byte not in each.bytes:
            continue
        access = each.bytes[byte]
        if access[0] == "write" and access[1]:
            return True
        if each.where == first.where and access[0] == mode:
            return True
    return False


def _hazards(bytes_of: Mapping[tuple[str, ...], set[int]]) -> list[Hazard]:
    return [
        Hazard(*key, tuple((byte, byte + 1) for byte in sorted(found)))  # type: ignore[arg-type]
        for key, found in bytes_of.items()
    ]
