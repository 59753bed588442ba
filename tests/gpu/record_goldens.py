"""Record random programs on torch's allocator, as files for ``tests.conformance``.

``python tests/gpu/record_goldens.py FOLDER [SEEDS]`` needs torch and a GPU. Each file is recorded
in a separate process, because the allocator must be new. The files have the format of those in
``tests/conformance/data``.
"""

import json
import lzma
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

KIB, MIB = 1 << 10, 1 << 20
OPERATIONS = 4000
STATS_EVERY = 100
AT_ONCE = 4

# A busy stream sleeps about this long; the program synchronizes well before that.
SLEEP_CYCLES = 800_000_000
LONGEST_BUSY_S = 0.08


@dataclass(frozen=True)
class Kind:
    """A family of programs: settings and operations."""

    conf: str = ""
    fraction: float | None = None
    streams: int = 2
    extra: tuple[str, ...] = ()
    largest: int = 64 * MIB


KINDS = {
    "default": Kind(streams=4),
    "oom": Kind(fraction=0.03, streams=3, extra=("record_stream", "busy"), largest=700 * MIB),
    "record_stream": Kind(streams=3, extra=("record_stream", "busy")),
    "pools": Kind(extra=("pools",)),
    # The order in which such frees complete depends on addresses inside the process; the totals
    # that depend on it are not compared for files with this name.
    "everything_pools": Kind(fraction=0.03, extra=("pools", "record_stream"), largest=400 * MIB),
    "roundup": Kind(conf="roundup_power2_divisions:[64:8,256:4,1024:2,>:16]", largest=700 * MIB),
    "max_split": Kind(conf="max_split_size_mb:32", fraction=0.06, largest=700 * MIB),
    "non_split": Kind(
        conf="max_split_size_mb:48,max_non_split_rounding_mb:100",
        fraction=0.06,
        extra=("record_stream", "busy"),
        largest=400 * MIB,
    ),
    "gc": Kind(
        conf="garbage_collection_threshold:0.5",
        fraction=0.04,
        extra=("record_stream",),
        largest=500 * MIB,
    ),
    "everything_gc": Kind(
        conf="garbage_collection_threshold:0.8,max_split_size_mb:64",
        fraction=0.04,
        extra=("pools", "record_stream"),
        largest=500 * MIB,
    ),
    "expandable": Kind(conf="expandable_segments:True", streams=3, largest=200 * MIB),
    "expandable_oom": Kind(
        conf="expandable_segments:True",
        fraction=0.04,
        extra=("record_stream", "busy"),
        largest=700 * MIB,
    ),
    "everything_expandable": Kind(
        conf="expandable_segments:True",
        fraction=0.05,
        extra=("pools", "record_stream"),
        largest=300 * MIB,
    ),
    "toggle": Kind(fraction=0.05, extra=("toggle", "record_stream", "busy"), largest=500 * MIB),
    "toggle_all": Kind(fraction=0.05, extra=("toggle_all",), largest=500 * MIB),
}

# Without max_split_size_mb: torch 2.11 frees the middle of a segment when it is lowered.
TOGGLED = (
    "expandable_segments:True",
    "expandable_segments:False",
    "expandable_segments:True,roundup_power2_divisions:4",
    "garbage_collection_threshold:0.6",
    "roundup_power2_divisions:8,expandable_segments:False",
)


@dataclass
class Program:
    """A random program that runs on torch's allocator."""

    kind: Kind
    random: random.Random
    streams: list[Any]
    ops: list[list[Any]] = field(default_factory=list)
    live: dict[int, Any] = field(default_factory=dict)
    pools: dict[int, Any] = field(default_factory=dict)
    open_pools: list[tuple[int, Any]] = field(default_factory=list)
    next_id: int = 0
    busy_since: float = 0.0
    busy_stream: int = -1
    uses: dict[int, set[int]] = field(default_factory=dict)

    def run(self) -> None:
        steps = {
            "malloc": (self.malloc, 50),
            "free": (self.free, 38),
            "sync": (self.sync, 4),
            "empty_cache": (self.empty_cache, 1),
        }
        extras = {
            "record_stream": (self.record_stream, 6),
            "busy": (self.busy, 1),
            "pools": (self.toggle_pool, 3),
            "toggle": (self.toggle, 1),
            "toggle_all": (self.toggle_all, 2),
        }
        steps |= {name: extras[name] for name in self.kind.extra}
        calls = [call for call, _ in steps.values()]
        weights = [weight for _, weight in steps.values()]
        for step in range(OPERATIONS):
            if step % STATS_EVERY == 0:
                self.stats()
            self.random.choices(calls, weights)[0]()
            if self.busy_since and time.monotonic() - self.busy_since > LONGEST_BUSY_S:
                self.sync()
        while self.open_pools:
            self.end_pool()
        self.sync()
        self.stats()

    def size(self) -> int:
        choose = self.random
        if choose.random() < 0.15:
            edge = choose.choice((512, 1 * KIB, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 32 * MIB))
            return max(1, edge * choose.choice((1, 1, 2, 3)) + choose.choice((-512, -1, 0, 1, 512)))
        return max(1, int(2 ** choose.uniform(0, self.kind.largest.bit_length() - 1)))

    def malloc(self) -> None:
        import torch

        self.next_id += 1
        index = self.random.randrange(len(self.streams))
        size = self.size()
        with torch.cuda.stream(self.streams[index]):
            try:
                tensor = torch.empty(size, dtype=torch.uint8, device="cuda")
            except torch.OutOfMemoryError:
                self.ops.append(["malloc", self.next_id, size, index, None, "oom"])
                return
        self.live[self.next_id] = tensor
        self.ops.append(["malloc", self.next_id, size, index, tensor.data_ptr()])

    def free(self) -> None:
        if self.live:
            chosen = self.random.choice(list(self.live)[-60:])
            uses = self.uses.get(chosen)
            if self.busy_since and uses and self.busy_stream not in uses:
                # The driver may keep an event of an idle stream behind another stream's work.
                return
            del self.live[chosen]
            self.ops.append(["free", chosen])
            # The events that the free recorded on idle streams are complete at the next operation.
            for index, stream in enumerate(self.streams):
                if not self.busy_since or index != self.busy_stream:
                    stream.synchronize()

    def record_stream(self) -> None:
        if self.live:
            chosen = self.random.choice(list(self.live))
            index = self.random.randrange(len(self.streams))
            self.live[chosen].record_stream(self.streams[index])
            self.uses.setdefault(chosen, set()).add(index)
            self.ops.append(["record_stream", chosen, index])

    def busy(self) -> None:
        import torch

        index = self.random.randrange(len(self.streams))
        if self.busy_since:
            return
        with torch.cuda.stream(self.streams[index]):
            torch.cuda._sleep(SLEEP_CYCLES)
        self.busy_since = time.monotonic()
        self.busy_stream = index
        self.ops.append(["busy", index])

    def sync(self) -> None:
        import torch

        torch.cuda.synchronize()
        self.busy_since = 0.0
        self.ops.append(["sync"])

    def empty_cache(self) -> None:
        import torch

        torch.cuda.empty_cache()
        self.ops.append(["empty_cache"])

    def toggle_pool(self) -> None:
        import torch

        if self.open_pools and (len(self.open_pools) == 2 or self.random.random() < 0.6):
            self.end_pool()
            return
        number = self.random.randrange(1, 4)
        if number in [opened for opened, _ in self.open_pools]:
            return
        # Ids follow the order of creation, and so must the numbers.
        for missing in range(1, number + 1):
            if missing not in self.pools:
                self.pools[missing] = torch.cuda.MemPool()
        scope = torch.cuda.use_mem_pool(self.pools[number])
        scope.__enter__()
        self.open_pools.append((number, scope))
        self.ops.append(["begin_pool", number - 1])

    def end_pool(self) -> None:
        number, scope = self.open_pools.pop()
        scope.__exit__(None, None, None)
        self.ops.append(["end_pool", number - 1])

    def set(self, settings: str) -> None:
        import torch

        torch._C._accelerator_setAllocatorSettings(settings)
        self.ops.append(["settings", settings])

    def toggle(self) -> None:
        self.set(self.random.choice(TOGGLED[:2]))

    def toggle_all(self) -> None:
        self.set(self.random.choice(TOGGLED))

    def stats(self) -> None:
        import torch

        self.ops.append(["stats", dict(torch.cuda.memory_stats())])


def record(name: str, seed: int) -> dict[str, Any]:
    """Run one program in this process, whose allocator is new, and return the file's content."""
    kind = KINDS[name]
    import torch

    torch.cuda.init()
    choose = random.Random(f"{name} {seed}")
    made = [torch.cuda.default_stream(), *(torch.cuda.Stream() for _ in range(kind.streams - 1))]
    streams = sorted(made, key=lambda stream: stream.cuda_stream)
    if kind.fraction is not None:
        torch.cuda.set_per_process_memory_fraction(kind.fraction)
    torch.cuda.memory._record_memory_history(max_entries=10_000_000, context=None)
    program = Program(kind, choose, streams)
    program.run()
    snapshot = torch.cuda.memory._snapshot()
    index = {stream.cuda_stream: position for position, stream in enumerate(streams)}
    return {
        "name": f"{name}_{seed}",
        "seed": seed,
        "conf": kind.conf,
        "fraction": kind.fraction,
        "torch": torch.__version__,
        "gpu": torch.cuda.get_device_name(),
        "total_memory": torch.cuda.get_device_properties(0).total_memory,
        "stream_handles": [stream.cuda_stream for stream in streams],
        "stream_ids": [stream.stream_id for stream in streams],
        "ops": program.ops,
        "trace": [
            _entry(entry, index)
            for entry in snapshot["device_traces"][0]
            if entry["action"] != "snapshot"
        ],
        "segments": [_segment(segment, index) for segment in snapshot["segments"]],
    }


def _entry(entry: dict[str, Any], index: dict[int, int]) -> dict[str, Any]:
    kept = {key: entry[key] for key in ("action", "addr", "size", "device_free") if key in entry}
    return kept | {"stream": index[entry["stream"]]}


def _segment(segment: dict[str, Any], index: dict[int, int]) -> dict[str, Any]:
    blocks = [
        {key: block[key] for key in ("address", "size", "requested_size", "state")}
        for block in segment["blocks"]
    ]
    kept = {key: value for key, value in segment.items() if key not in {"frames", "blocks"}}
    return kept | {"stream": index[segment["stream"]], "blocks": blocks}


def _record_in_a_process(folder: Path, name: str, seed: int) -> str:
    path = folder / f"{name}_{seed}.json.xz"
    done = subprocess.run(
        [sys.executable, __file__, "--one", name, str(seed), str(path)],
        env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": KINDS[name].conf},
        capture_output=True,
        text=True,
        check=False,
    )
    return f"{path.name}: {done.stdout.strip() or done.stderr.strip()[-300:]}"


def main() -> None:
    if sys.argv[1] == "--one":
        name, seed, path = sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
        content = record(name, seed)
        path.write_bytes(lzma.compress(json.dumps(content).encode(), preset=1))
        print(f"{len(content['ops'])} operations, {len(content['trace'])} trace entries")
        return
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    seeds = range(int(sys.argv[2]) if len(sys.argv) > 2 else 1)
    jobs = [(name, seed) for seed in seeds for name in KINDS]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for line in pool.map(lambda job: _record_in_a_process(folder, *job), jobs):
            print(line, flush=True)


if __name__ == "__main__":
    main()
