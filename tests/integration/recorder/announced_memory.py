"""A program with random allocations, whose NVTX tool must know the allocator's live blocks.

``python -m tests.integration.recorder.announced_memory SETTINGS SEED`` writes as JSON how many
regions were compared, and in how many comparisons a stream still used a freed block.
"""

import ctypes
import json
import os
import random
import sys

from gpuviz import _core

MIB = 1 << 20
TOOL = ctypes.CDLL(os.environ["NVTX_INJECTION64_PATH"])
TOOL.announced.restype = ctypes.c_char_p


def expected(allocator):
    """Return what the tool should print: heaps, and regions with the size asked for."""
    heaps, regions = [], []
    for segment in allocator.memory_snapshot():
        if segment["segment_pool_id"] != (0, 0) or segment["is_expandable"]:
            continue
        heaps.append((segment["address"], segment["total_size"]))
        regions += [
            (block["address"], block["requested_size"])
            for block in segment["blocks"]
            if block["state"] != "inactive"
        ]
    lines = [f"heap {address} {size}\n" for address, size in sorted(heaps)]
    return "".join(lines + [f"region {address} {size}\n" for address, size in sorted(regions)])


class RandomProgram:
    """Random operations of one allocator."""

    def __init__(self, allocator: _core.CachingAllocator, seed: int) -> None:
        self.allocator = allocator
        self.chance = random.Random(seed)
        self.live: list[int] = []
        self.pool = allocator.create_pool()
        self.is_in_pool = False

    def step(self) -> None:
        action = self.chance.random()
        if action < 0.5:
            self.allocate()
        elif action < 0.85 and self.live:
            self.allocator.free(self.live.pop(self.chance.randrange(len(self.live))))
        elif action < 0.95 and self.live:
            self.allocator.record_stream(self.chance.choice(self.live), 9)
        elif action < 0.97:
            self.allocator.empty_cache()
        else:
            change = self.allocator.end_pool if self.is_in_pool else self.allocator.begin_pool
            change(self.pool)
            self.is_in_pool = not self.is_in_pool

    def allocate(self) -> None:
        """Allocate; free everything if memory is full."""
        size = self.chance.randint(1, self.chance.choice((4096, MIB, 24 * MIB, 100 * MIB)))
        try:
            self.live.append(self.allocator.allocate(size, self.chance.choice((0, 7))))
        except _core.OutOfMemoryError:
            while self.live:
                self.allocator.free(self.live.pop())


def main(settings: str, seed: int) -> None:
    """Compare after each step."""
    device = _core.SimulatedDevice(600 * MIB)
    allocator = _core.CachingAllocator(device, _core.AllocatorSettings.parse(settings))
    if not _core.announce_memory(allocator):
        raise AssertionError("no tool")
    program = RandomProgram(allocator, seed)
    pending = regions = 0
    for _ in range(1500):
        program.step()
        announced = TOOL.announced().decode()
        if announced != expected(allocator):
            raise AssertionError(f"announced\n{announced}expected\n{expected(allocator)}")
        regions += announced.count("region")
        pending += any(
            block["state"] == "active_pending_free"
            for segment in allocator.memory_snapshot()
            for block in segment["blocks"]
        )
    json.dump([regions, pending], sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
