"""Time per operation of the native allocator, driven by the replay without Python."""

import time

import numpy as np

import gpuviz
from gpuviz import _core

Row = tuple[str, str, str, bool]
Operations = list[tuple[_core.Operation, int, int]]

MALLOC, FREE = _core.Operation.malloc, _core.Operation.free
LIVE_BLOCKS = 10_000
PAIRS = 500_000
ROUNDS = 5
CAPACITY = 1 << 42


def mixed_sizes(generator: np.random.Generator, count: int) -> list[int]:
    """Return sizes from 1 B to 64 MiB whose logarithms are uniform."""
    return np.exp2(generator.uniform(0, 26, count)).astype(np.int64).tolist()


def exchanges(seed: int) -> Operations:
    """Return `LIVE_BLOCKS` mallocs, then `PAIRS` pairs of a free of a random block and a malloc."""
    generator = np.random.default_rng(seed)
    sizes = mixed_sizes(generator, LIVE_BLOCKS + PAIRS)
    operations: Operations = [(MALLOC, i, sizes[i]) for i in range(LIVE_BLOCKS)]
    victims = generator.integers(0, LIVE_BLOCKS, PAIRS).tolist()
    for victim, size in zip(victims, sizes[LIVE_BLOCKS:], strict=True):
        operations += [(FREE, victim, 0), (MALLOC, victim, size)]
    return operations


def single_size() -> Operations:
    """Return `PAIRS` pairs of a malloc of 1 KiB and its free."""
    return [(MALLOC, 0, 1024), (FREE, 0, 0)] * PAIRS


def elapsed_ns(operations: Operations) -> int:
    """Return the ns of the fastest of a few runs, each on a new device."""
    rows = np.array([(kind.value, number, size) for kind, number, size in operations], np.uint64)
    program = _core.ReplayProgram(
        operation=np.ascontiguousarray(rows[:, 0], np.uint8),
        id=np.ascontiguousarray(rows[:, 1], np.uint32),
        argument=np.ascontiguousarray(rows[:, 2]),
        stream=np.zeros(len(rows), np.uint64),
    )
    times = []
    for _ in range(ROUNDS):
        device = _core.SimulatedDevice(CAPACITY)
        replayer = _core.Replayer(program, device, _core.CachingAllocator(device))
        times.append(replayer.run()["elapsed_ns"])
    return min(times)


def seconds_of_public_replay() -> float:
    """Return the seconds per operation of `gpuviz.replay`, with everything it returns."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu, stacks=False) as recorder:
        for _ in range(PAIRS // 2):
            gpu.empty(1024)
    recording = recorder.recording
    events = recording.table("memory_events")
    times = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        gpuviz.replay(recording)
        times.append(time.perf_counter() - began)
    # A free is two events.
    return min(times) / (events.num_rows * 2 / 3)


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    operations = exchanges(seed=1)
    total_ns = elapsed_ns(operations)
    filling_ns = elapsed_ns(operations[:LIVE_BLOCKS])
    mixed_ns = (total_ns - filling_ns) / PAIRS
    single_ns = elapsed_ns(single_size()) / PAIRS
    millions = len(operations) / total_ns * 1e3
    recorded_millions = 1e-6 / seconds_of_public_replay()
    return [
        ("best fit + free, 10,000 live blocks", "300 ns", f"{mixed_ns:.0f} ns", mixed_ns <= 300),
        ("the same block again and again", "no bound", f"{single_ns:.0f} ns", True),
        (
            "replay on the simulated device",
            "2.0 M operations/s",
            f"{millions:.1f} M operations/s",
            millions >= 2,
        ),
        (
            "gpuviz.replay of a recording",
            "2.0 M operations/s",
            f"{recorded_millions:.1f} M operations/s",
            recorded_millions >= 2,
        ),
    ]
