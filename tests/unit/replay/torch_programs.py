"""Random programs of torch's allocator, and the memory snapshots that torch would write of them."""

from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from gpuviz import _core
from gpuviz.data.tables import ACTIONS
from gpuviz.recording import Recording
from tests.unit.formats.plain_snapshots import FIRST_US, read

MIB = 1 << 20
STREAMS = (0, 0x55AA0000, 0x55AB0000, 0x55AC0000)
# What torch's traces lack.
UNTRACED = {"record_stream", "snapshot", "empty_cache", "memory_limit"}
SETTINGS = (
    "",
    "max_split_size_mb:32",
    "max_split_size_mb:64,max_non_split_rounding_mb:30",
    "roundup_power2_divisions:4",
    "roundup_power2_divisions:[256:1,512:2,1024:4,>:8]",
    "expandable_segments:True",
    "expandable_segments:True,roundup_power2_divisions:8",
    "garbage_collection_threshold:0.6",
    "large_segment_size_mb:32",
)


@dataclass(frozen=True)
class TorchProgram:
    """What a program did on a device of ``total`` bytes, of which it may reserve a fraction."""

    settings: str
    fraction: float | None
    total: int
    trace: list[dict[str, Any]]
    segments: list[dict[str, Any]]
    peak_reserved: int
    calls: int

    @property
    def all_settings(self) -> str:
        limit = [] if self.fraction is None else [f"per_process_memory_fraction:{self.fraction}"]
        return ",".join([*([self.settings] if self.settings else []), *limit])

    def snapshot(self) -> dict[str, Any]:
        parsed = _core.AllocatorSettings.parse(self.settings)
        settings = {
            "PYTORCH_CUDA_ALLOC_CONF": self.settings,
            "max_split_size": parsed.max_split_size,
            "roundup_power2_divisions": dict(parsed.roundup_power2_divisions),
        }
        return {
            "segments": self.segments,
            "device_traces": [self.trace],
            "allocator_settings": settings,
        }

    def recording(self, folder: Path) -> Recording:
        return read(self.snapshot(), folder)


def random_program(
    seed: int, *, count: int = 500, stacks: bool = True, settings: str | None = None
) -> TorchProgram:
    """Run a program of ``count`` operations, of every kind that torch's have."""
    random = Random(seed)
    settings = random.choice(SETTINGS) if settings is None else settings
    fraction = None
    if "garbage" in settings or random.random() < 0.5:
        fraction = random.choice([0.04, 0.06, 0.1])
    total = 80 << 30
    rows = list(_operations(random, count, may_use_pools=random.random() < 0.4))
    columns = np.array([row[:4] for row in rows], np.uint64)
    sites = [row[4] if stacks else 0 for row in rows]
    program = _core.ReplayProgram(
        operation=np.ascontiguousarray(columns[:, 0], np.uint8),
        id=np.ascontiguousarray(columns[:, 1], np.uint32),
        argument=np.ascontiguousarray(columns[:, 2], np.uint64),
        stream=np.ascontiguousarray(columns[:, 3], np.uint64),
        stack=np.array(sites, np.uint32),
    )
    device = _core.SimulatedDevice(total)
    allocator = _core.CachingAllocator(device, _core.AllocatorSettings.parse(settings))
    if fraction is not None:
        allocator.set_memory_fraction(fraction)
    log = _core.EventLog()
    allocator.attach(log)
    _core.Replayer(program, device, allocator).run()
    calls = sum(row[0] == _core.Operation.empty_cache.value for row in rows)
    return TorchProgram(
        settings=settings,
        fraction=fraction,
        total=total,
        trace=_trace(log.events()),
        segments=[_segment(each) for each in allocator.memory_snapshot()],
        peak_reserved=allocator.memory_stats()["reserved_bytes.all.peak"],
        calls=calls,
    )


def _operations(random: Random, count: int, *, may_use_pools: bool):
    """Yield rows of operation, block, argument, stream and stack."""
    kind = _core.Operation
    live: list[int] = []
    pool: int | None = None
    for number in range(count):
        stack = random.randrange(1, 12)
        drawn = random.random()
        if drawn < 0.5 or not live:
            yield kind.malloc.value, number, _size(random), random.choice(STREAMS), stack
            live.append(number)
        elif drawn < 0.88:
            block = live.pop(random.randrange(len(live)))
            yield kind.free.value, block, 0, 0, stack
        elif drawn < 0.93:
            used_by = random.choice(STREAMS)
            yield kind.record_stream.value, random.choice(live), 0, used_by, stack
        elif drawn < 0.95:
            yield kind.busy.value, 0, 0, random.choice(STREAMS), stack
        elif drawn < 0.96:
            yield kind.sync.value, 0, 0, 0, stack
        elif drawn < 0.985:
            # The stack of a call of empty_cache is that of no request.
            yield kind.empty_cache.value, 0, 0, 0, 100 + stack
        elif may_use_pools and pool is None:
            pool = random.randrange(3)
            yield kind.begin_pool.value, 0, pool, 0, stack
        elif pool is not None:
            yield kind.end_pool.value, 0, pool, 0, stack
            pool = None


def _size(random: Random) -> int:
    scale = random.choice([1 << 12, 1 << 20, 8 * MIB, 40 * MIB, 300 * MIB])
    return random.randrange(1, scale)


def _trace(events: dict[str, Any]) -> list[dict[str, Any]]:
    columns = {name: column.tolist() for name, column in events.items()}
    trace = []
    for row, code in enumerate(columns["action"]):
        action = ACTIONS[code]
        if action in UNTRACED:
            continue
        is_whole = action.startswith("segment") or action == "oom"
        stack = columns["stack"][row]
        trace.append(
            {
                "action": action,
                ("device_free" if action == "oom" else "addr"): columns["address"][row],
                "size": columns["size" if is_whole else "requested_size"][row],
                "stream": columns["stream"][row],
                "pool_id": (0, columns["pool"][row] // 2),
                "time_us": FIRST_US + 3 * row,
                "frames": [_frame(stack)] if stack else [],
            }
        )
    return trace


def _frame(stack: int) -> dict[str, Any]:
    return {"name": f"step {stack}", "filename": "train.py", "line": stack}


def _segment(segment: dict[str, Any]) -> dict[str, Any]:
    blocks = [block | {"frames": []} for block in segment["blocks"]]
    return segment | {"device": 0, "frames": [], "blocks": blocks}
