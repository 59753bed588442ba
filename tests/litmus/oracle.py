"""Judges a litmus program by brute force, as slowly and as plainly as the rules are written.

Sets of actions are integers, one bit for each action. Every pair of accesses is compared, byte by
byte. Not optimized and not shared with the engine on purpose.
"""

from collections.abc import Mapping

from tests.litmus.byte_accesses import is_known, is_superseded, union
from tests.litmus.oracle_accesses import Accesses
from tests.litmus.oracle_objects import Accessed, Block, ByteAccess, Capture, Graph
from tests.litmus.program import Hazard, Operation, Program, accesses_of


def judge(program: Program) -> tuple[list[Hazard], list[Hazard]]:
    """Return the hazards that must be reported, and those that may be besides."""
    oracle = Oracle(program)
    for operation in program.operations:
        getattr(oracle, operation.op)(operation)
    return oracle.verdict()


class Oracle(Accesses):
    """A program with its allocators and graphs, and the verdict on it."""

    def __init__(self, program: Program) -> None:
        super().__init__(program)
        for name, lists in program.graphs.items():
            self.graphs[name] = Graph(list(self.by_block(accesses_of(lists))))

    def verdict(self) -> tuple[list[Hazard], list[Hazard]]:
        """Return what must be reported, and what may be."""
        for doubt in self.doubts:
            self.add(doubt.key, doubt.byte, is_required=doubt.is_required)
        return _hazards(self.required), _hazards(self.possible)

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
                is_required = not is_superseded(first, byte, self.accesses[number + 1 :])
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
        self.graphs[o.graph] = Graph(union(capture.accesses))

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
            is_certain = is_known(access) or owner.how == "async"
            tier = "certain" if is_certain else "probable"
            self.add(("reuse", owner.allocated_by, o.id, block.name, tier), at)


def _hazards(bytes_of: Mapping[tuple[str, ...], set[int]]) -> list[Hazard]:
    return [
        Hazard(*key, tuple((byte, byte + 1) for byte in sorted(found)))  # type: ignore[arg-type]
        for key, found in bytes_of.items()
    ]
