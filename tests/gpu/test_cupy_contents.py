"""Array contents stay correct with the allocator on any streams."""

import random

import pytest

import gpuviz

pytestmark = pytest.mark.gpu

OPERATIONS = 100_000
STREAMS = 4
LIVE = 200


class _Program:
    """A random CuPy program that knows the expected content of every array."""

    def __init__(self, seed: int) -> None:
        import cupy as cp

        self.cp = cp
        self.random = random.Random(seed)
        self.streams = [cp.cuda.Stream(non_blocking=True) for _ in range(STREAMS)]
        self.live: list[tuple] = []
        self.wrong = cp.zeros((), dtype=cp.int64)
        self.checks = 0

    def run(self, operations: int) -> None:
        for _ in range(operations):
            self.random.choices(
                [self.make, self.add, self.check, self.drop],
                [4, 2, 2, 3],
            )[0]()
        while self.live:
            self.drop()
        self.cp.cuda.Device().synchronize()

    def make(self) -> None:
        if len(self.live) >= LIVE:
            self.drop()
        stream = self.random.choice(self.streams)
        value = self.random.randrange(1 << 20)
        count = int(2 ** self.random.uniform(0, 19))
        with stream:
            self.live.append((self.cp.full(count, value, dtype=self.cp.int32), value, stream))

    def add(self) -> None:
        """Use an array on another stream; its memory must not be reused before."""
        if not self.live:
            return
        array, value, stream = self.random.choice(self.live)
        other = self.random.choice(self.streams)
        other.wait_event(stream.record())
        with other:
            total = array + 1
        gpuviz.record_stream(array, other)
        if len(self.live) < LIVE:
            self.live.append((total, value + 1, other))

    def check(self) -> None:
        if not self.live:
            return
        array, value, stream = self.random.choice(self.live)
        with stream:
            wrong = (array != value).sum()
            self.wrong += wrong
        # `wrong` was added on `stream`; later additions on others come after it.
        for other in self.streams:
            other.wait_event(stream.record())
        self.checks += 1

    def drop(self) -> None:
        if self.live:
            slot = self.random.randrange(len(self.live))
            self.live[slot] = self.live[-1]
            self.live.pop()


@pytest.mark.parametrize("settings", ["", "expandable_segments:True", "max_split_size_mb:20"])
def test_contents_stay_right_in_a_random_program_on_four_streams(settings):
    gpuviz.set_allocator_settings(settings)
    operations = OPERATIONS if not settings else OPERATIONS // 10

    with gpuviz.record() as recorder:
        program = _Program(seed=1)
        program.run(operations)
        wrong = int(program.wrong)
    gpuviz.set_allocator_settings("expandable_segments:False")

    assert wrong == 0
    assert program.checks > operations // 10
    stats = recorder.recording.memory_stats(device=0)
    assert stats["allocation.all.allocated"] > operations // 4
    assert recorder.status().dropped == 0


def test_memory_used_by_another_stream_waits_for_it():
    import cupy as cp

    spin = cp.RawKernel(
        'extern "C" __global__ void spin(long long cycles) {'
        " long long start = clock64(); while (clock64() - start < cycles) {} }",
        "spin",
    )
    spin((1,), (1,), (1,))
    with gpuviz.record():
        main, side = cp.cuda.Stream(non_blocking=True), cp.cuda.Stream(non_blocking=True)
        with main:
            array = cp.full(1 << 20, 7, dtype=cp.int32)
            array.copy()  # CUDA's lazy loading at a first copy waits for the device
        side.wait_event(main.record())
        with side:
            spin((1,), (1,), (2_000_000_000,))
            copy = array.copy()
        gpuviz.record_stream(array, side)
        address = array.data.ptr
        del array
        with main:
            others = [cp.empty(1 << 20, dtype=cp.int32) for _ in range(8)]
        still_busy = not side.done
        addresses = {other.data.ptr for other in others}
        side.synchronize()
        equal = bool((copy == 7).all())

    assert still_busy
    assert address not in addresses
    assert equal


def test_record_stream_refuses_memory_of_another_allocator():
    import cupy as cp

    array = cp.zeros(10)
    with gpuviz.record(), pytest.raises(ValueError, match="memory of gpuviz's allocator"):
        gpuviz.record_stream(array, cp.cuda.Stream())
