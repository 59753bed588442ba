"""Random programs with pinned memory, against a model that knows every pending copy."""

from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    rule,
)

from gpuviz import _core
from tests.examples import examples

MIB = 1 << 20
LIMIT = 64 * MIB
STREAMS = st.sampled_from([0, 0x1000, 0x2000])
DEVICES = st.sampled_from([0, 1])
SIZES = st.one_of(
    st.integers(1, 4096), st.integers(1, 8 * MIB), st.sampled_from([MIB, MIB + 1, 2 * LIMIT])
)
SETTINGS = st.sampled_from(
    [
        "",
        "pinned_max_round_threshold_mb:0",
        "pinned_max_round_threshold_mb:1",
        "pinned_max_cached_size_mb:2",
    ],
)


@dataclass
class Block:
    """A live block, or one that was freed.

    Attributes:
        size: Size in bytes.
        copies: Streams (of a device) whose copies have not finished.
        uses: Streams that copied since its allocation, and were not destroyed since then.
        waits: Streams whose work it waits for once it is free.
    """

    size: int
    copies: set[tuple[int, int]] = field(default_factory=set)
    uses: set[tuple[int, int]] = field(default_factory=set)
    waits: set[tuple[int, int]] = field(default_factory=set)


class RandomHostPrograms(RuleBasedStateMachine):
    """Allocations, copies on streams of two devices, and frees while these run."""

    blocks: Bundle[int] = Bundle("blocks")

    def __init__(self) -> None:
        super().__init__()
        self.devices = [_core.SimulatedDevice(1 << 30, ordinal) for ordinal in (0, 1)]
        self.devices[0].refuse_host_beyond(LIMIT)
        self.settings = _core.AllocatorSettings.parse("")
        self.allocator = _core.HostAllocator(self.devices[0], self.settings)
        self.live: dict[int, Block] = {}
        self.pending: dict[int, Block] = {}
        self.busy: set[tuple[int, int]] = set()
        self.allocated = 0
        self.handed_out = 0

    def rounded(self, size: int) -> int:
        limit = min(self.settings.pinned_max_round_threshold, self.settings.pinned_max_cached_size)
        return size if size > limit else 1 << (size - 1).bit_length()

    @rule(target=blocks, size=SIZES)
    def allocate(self, size: int) -> object:
        before = self.allocator.memory_stats()
        try:
            address = self.allocator.allocate(size)
        except MemoryError:
            self.finish_all()
            assert sum(block.size for block in self.live.values()) + self.rounded(size) > LIMIT
            return multiple()
        after = self.allocator.memory_stats()
        self.notice_synchronization()
        assert all(
            address + size <= other or other + block.size <= address
            for blocks in (self.live, self.still_copied())
            for other, block in blocks.items()
        )
        self.pending.pop(address, None)
        taken = after["active_bytes.allocated"] - before["active_bytes.allocated"]
        assert taken >= self.rounded(size)
        self.live[address] = Block(taken)
        self.allocated += taken
        self.handed_out += 1
        return address

    def notice_synchronization(self) -> None:
        """After a refusal the allocator may have waited for streams."""
        for device, stream in list(self.busy):
            if not self.devices[device].is_busy(stream):
                self.forget(device, stream)

    def still_copied(self) -> dict[int, Block]:
        return {address: block for address, block in self.pending.items() if block.copies}

    def waiting(self) -> dict[int, Block]:
        return {address: block for address, block in self.pending.items() if block.waits}

    @rule(address=blocks, offset=st.integers(0, 4095), device=DEVICES, stream=STREAMS)
    def copy(self, address: int, offset: int, device: int, stream: int) -> None:
        block = self.live.get(address)
        if block is None:
            return
        self.devices[device].occupy(stream)
        self.busy.add((device, stream))
        inside = address + offset % block.size
        assert self.allocator.record_event(inside, self.devices[device], stream)
        block.copies.add((device, stream))
        block.uses.add((device, stream))

    @rule(address=consumes(blocks))
    def free(self, address: int) -> None:
        block = self.live.pop(address, None)
        if block is not None:
            self.allocator.free(address)
            block.waits |= block.uses & self.busy
            assert block.copies <= block.waits
            self.pending[address] = block

    @rule(device=DEVICES, stream=STREAMS)
    def finish(self, device: int, stream: int) -> None:
        self.devices[device].finish(stream)
        self.forget(device, stream)

    def forget(self, device: int, stream: int) -> None:
        self.busy.discard((device, stream))
        for block in [*self.live.values(), *self.pending.values()]:
            block.copies.discard((device, stream))
            block.waits.discard((device, stream))

    def finish_all(self) -> None:
        for device in self.devices:
            device.finish_all()
        for device, stream in list(self.busy):
            self.forget(device, stream)

    @rule(device=DEVICES, stream=STREAMS)
    def destroy(self, device: int, stream: int) -> None:
        self.allocator.end_stream(self.devices[device], stream)
        for block in self.live.values():
            block.waits |= block.uses & self.busy & {(device, stream)}
            block.uses.discard((device, stream))

    @rule()
    def empty_cache(self) -> None:
        self.allocator.empty_cache()
        held = [*self.live.values(), *self.waiting().values()]
        assert self.devices[0].host_used == sum(block.size for block in held)
        self.pending = self.waiting()

    @rule(text=SETTINGS)
    def change_settings(self, text: str) -> None:
        self.settings = self.settings.updated(text)
        self.allocator.apply_settings(self.settings)

    @invariant()
    def statistics_equal_a_recount(self) -> None:
        stats = self.allocator.memory_stats()
        assert stats["allocated_bytes.current"] == self.devices[0].host_used
        assert stats["allocations.current"] == stats["num_host_alloc"] - stats["num_host_free"]
        assert stats["host_alloc_time.count"] == stats["num_host_alloc"]
        assert stats["active_requests.allocated"] == self.handed_out
        assert stats["active_bytes.allocated"] == self.allocated
        held = [*self.live.values(), *self.waiting().values()]
        most = [*self.live.values(), *self.pending.values()]
        assert len(held) <= stats["active_requests.current"] <= len(most)
        assert sum(block.size for block in held) <= stats["active_bytes.current"]
        assert stats["active_bytes.current"] <= sum(block.size for block in most)
        assert stats["active_bytes.current"] <= stats["allocated_bytes.current"] <= LIMIT

    def teardown(self) -> None:
        for address in self.live:
            self.allocator.free(address)
        self.finish_all()
        self.allocator.empty_cache()
        stats = self.allocator.memory_stats()
        assert {value for key, value in stats.items() if key.endswith(".current")} == {0}
        assert self.devices[0].host_used == 0


RandomHostPrograms.TestCase.settings = examples(12, stateful_step_count=60)
TestRandomHostPrograms = RandomHostPrograms.TestCase
