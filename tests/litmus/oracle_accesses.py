"""Accesses of a litmus program, each compared with all before it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from tests.litmus.byte_accesses import conflict, is_known, is_superseded, kind_of, strongest
from tests.litmus.oracle_objects import Accessed, Block, ByteAccess, Doubt
from tests.litmus.oracle_order import Order
from tests.litmus.program import Operation, place_of


class Accesses(Order):
    """A program whose operations access memory."""

    def add(self, key: tuple[str, ...], byte: int, *, is_required: bool = True) -> None:
        (self.required if is_required else self.possible)[key].add(byte)

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
            yield self.blocks[name], {byte: strongest(all_) for byte, all_ in of_block.items()}

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
                    if not conflict(a, b):
                        continue
                    kind = kind_of(a[0], b[0])
                    if first.block is not block and (first.block.is_live or block.is_live):
                        kind = "reuse"
                    tier = "certain" if is_known(a) and is_known(b) else "probable"
                    key = (kind, first.id, operation.id, block.name, tier)
                    is_required = not is_superseded(first, byte, past[number + 1 :])
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
