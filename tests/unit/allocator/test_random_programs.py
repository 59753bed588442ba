from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    multiple,
    precondition,
    rule,
)

from gpuviz import _core
from tests.examples import examples
from tests.unit.allocator.invariants import check

MIB = 1 << 20
CAPACITY = 600 * MIB
STREAMS = st.sampled_from([0, 0x1000, 0x2000, 0x3000])
POOLS = st.integers(0, 2)
FILTERS = st.sampled_from(list(_core.CachingAllocator.PoolFilter))
SIZES = st.one_of(
    st.integers(1, 4096),
    st.integers(1, MIB),
    st.integers(1, 24 * MIB),
    st.integers(1, 200 * MIB),
    st.sampled_from([512, 513, MIB, MIB + 1, 10 * MIB - 1, 10 * MIB, 20 * MIB, 2 * CAPACITY]),
)
CONFIGURATIONS = st.sampled_from(
    [
        "",
        "expandable_segments:True",
        "expandable_segments:False",
        "max_split_size_mb:40",
        "max_split_size_mb:20,max_non_split_rounding_mb:30,garbage_collection_threshold:0.5",
        "roundup_power2_divisions:4",
        "roundup_power2_divisions:[1:2,>:8],garbage_collection_threshold:0.9",
    ],
)


class RandomPrograms(RuleBasedStateMachine):
    """Programs of any kind, on a small device that is often full."""

    blocks: Bundle[int] = Bundle("blocks")

    def __init__(self) -> None:
        super().__init__()
        self.device = _core.SimulatedDevice(CAPACITY)
        self.allocator = _core.CachingAllocator(self.device)
        self.pools = [
            self.allocator.create_pool(),
            self.allocator.create_pool(no_split=True),
            self.allocator.create_pool(use_on_oom=True),
        ]
        self.open_pools: list[int] = []
        self.live: dict[int, tuple[int, int]] = {}

    @rule(target=blocks, size=SIZES, stream=STREAMS)
    def allocate(self, size: int, stream: int) -> object:
        try:
            address = self.allocator.allocate(size, stream, stack=size)
        except _core.OutOfMemoryError:
            return multiple()
        assert address not in self.live
        self.live[address] = (size, stream)
        return address

    @rule(address=consumes(blocks))
    def free(self, address: int) -> None:
        if self.live.pop(address, None) is not None:
            self.allocator.free(address)

    @rule(address=blocks, stream=STREAMS)
    def record_stream(self, address: int, stream: int) -> None:
        if address in self.live:
            self.allocator.record_stream(address, stream)

    @rule(stream=STREAMS)
    def occupy(self, stream: int) -> None:
        self.device.occupy(stream)

    @rule(stream=STREAMS)
    def finish(self, stream: int) -> None:
        self.device.finish(stream)

    @rule()
    def finish_all(self) -> None:
        self.device.finish_all()

    @rule()
    def empty_cache(self) -> None:
        before = self.device.used
        promised = self.allocator.releasable_bytes()
        self.allocator.empty_cache()
        assert before - self.device.used == promised

    @rule(number=POOLS, allocations=FILTERS)
    def begin_pool(self, number: int, allocations: _core.CachingAllocator.PoolFilter) -> None:
        if number not in self.open_pools and number < len(self.pools):
            self.allocator.begin_pool(self.pools[number], allocations)
            self.open_pools.append(number)

    @precondition(lambda self: self.open_pools)
    @rule(data=st.data())
    def end_pool(self, data: st.DataObject) -> None:
        number = data.draw(st.sampled_from(self.open_pools))
        self.allocator.end_pool(self.pools[number])
        self.open_pools.remove(number)

    @rule(number=POOLS)
    def replace_pool(self, number: int) -> None:
        if number not in self.open_pools:
            self.allocator.release_pool(self.pools[number])
            self.pools[number] = self.allocator.create_pool()

    @rule(text=CONFIGURATIONS)
    def change_settings(self, text: str) -> None:
        self.allocator.apply_settings(self.allocator.settings.updated(text))

    @rule(fraction=st.sampled_from([0.3, 0.6, 1.0]))
    def limit(self, fraction: float) -> None:
        self.allocator.set_memory_fraction(fraction)

    @invariant()
    def invariants_hold(self) -> None:
        check(self.allocator, self.device)

    @invariant()
    def live_blocks_are_those_of_the_program(self) -> None:
        allocated = {
            block["address"]: (block["requested_size"], segment["stream"])
            for segment in self.allocator.memory_snapshot()
            for block in segment["blocks"]
            if block["state"] == "active_allocated"
        }
        assert allocated == self.live

    def teardown(self) -> None:
        for number in self.open_pools:
            self.allocator.end_pool(self.pools[number])
        for pool in self.pools:
            self.allocator.release_pool(pool)
        for address in self.live:
            self.allocator.free(address)
        self.device.finish_all()
        self.allocator.empty_cache()
        assert self.device.used == 0
        assert self.allocator.memory_snapshot() == []


RandomPrograms.TestCase.settings = examples(
    12,
    stateful_step_count=60,
)
TestRandomPrograms = RandomPrograms.TestCase
