"""Cost of a recording of a million events: saving, loading, analyses, and disk space."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from gpuviz import _core
from gpuviz.data.manifest import Manifest
from gpuviz.data.stream_handle import stream_row
from gpuviz.data.tables import schemas
from gpuviz.recorder.row_batches import batch, pool_rows
from gpuviz.recording import Recording, load

EVENTS = 1_000_000
PAIRS = 340_000
LIVE_BLOCKS = 500
SITES = 2_000
DEPTH = 12
STREAMS = (0, 0x1000, 0x2000, 0x3000)
THREADS = (4711, 4712, 4713)
ROUNDS = 3

Row = tuple[str, str, str, bool]


def program(seed: int) -> _core.ReplayProgram:
    """Return allocations by many lines, each with its own sizes and lifetimes."""
    generator = np.random.default_rng(seed)
    size_of = np.exp2(generator.uniform(8, 25, SITES)).astype(np.uint64)
    site = np.minimum(generator.geometric(0.005, PAIRS), SITES) - 1
    steps = PAIRS - LIVE_BLOCKS
    kinds = np.full(LIVE_BLOCKS + 2 * steps, _core.Operation.malloc.value, np.uint8)
    kinds[LIVE_BLOCKS::2] = _core.Operation.free.value
    # Row of `site` for each operation; a free is next to the allocation that replaces it.
    made = np.concatenate([np.arange(LIVE_BLOCKS), np.repeat(np.arange(LIVE_BLOCKS, PAIRS), 2)])
    victims = generator.integers(0, LIVE_BLOCKS, steps)
    sites = site[made]
    return _core.ReplayProgram(
        operation=kinds,
        id=np.concatenate([np.arange(LIVE_BLOCKS), np.repeat(victims, 2)]).astype(np.uint32),
        argument=size_of[sites],
        stream=np.array(STREAMS, np.uint64)[sites % len(STREAMS)],
        stack=(sites + 1).astype(np.uint32),
        thread=np.array(THREADS, np.uint32)[sites % len(THREADS)],
    )


def recorded() -> Recording:
    """Return a recording of `EVENTS` events of that program on gpuviz's allocator."""
    device = _core.SimulatedDevice(80 << 30)
    allocator = _core.CachingAllocator(device)
    session = _core.Session()
    session.start()
    allocator.attach(session.sink(0))
    _core.Replayer(program(seed=1), device, allocator).run()
    allocator.detach()
    session.stop()
    batches = [batch("memory_events", chunk) for chunk in session.take(flush=True)]
    events = paced(pa.Table.from_batches(batches).slice(0, EVENTS))
    rows = {
        "streams": [stream_row(*row) for row in session.streams()],
        "pools": pool_rows(events["pool"].unique().to_pylist()),
        "stacks": [{"id": n + 1, "frames": frames_of(n)} for n in range(SITES)],
        "frames": [
            {"id": n + 1, "name": f"step_{n}", "filename": f"src/part_{n % 40}.py", "line": n}
            | {"cell": 0, "source": f"x{n} = a[{n}] + b"}
            for n in range(SITES)
        ],
        "threads": [{"id": thread, "name": f"worker {thread}"} for thread in THREADS],
    }
    known = schemas()
    tables = {name: pa.Table.from_pylist(each, schema=known[name]) for name, each in rows.items()}
    return Recording(tables | {"memory_events": events}, Manifest(simulated=True))


def paced(events: pa.Table) -> pa.Table:
    """Return events with random pauses of some microseconds between them."""
    times = events["time"].to_numpy()
    pauses = np.random.default_rng(3).exponential(20_000, len(times)).astype(np.int64)
    pauses[1:][times[1:] == times[:-1]] = 0
    return events.set_column(0, "time", pa.array(np.cumsum(pauses)))


def frames_of(site: int) -> list[int]:
    """Return the frames of a stack: its own line, then lines shared by more and more stacks."""
    return [site // 2**level + 1 for level in range(DEPTH)]


def fastest_s(measured: Callable[[], object]) -> float:
    """Return the seconds of the fastest of a few calls."""
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        measured()
        times.append(time.perf_counter() - begin)
    return min(times)


def rows() -> list[Row]:
    """Measure everything; return the lines of the table."""
    recording = recorded()
    assert recording.tables["memory_events"].num_rows == EVENTS
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.gpuviz"
        save = fastest_s(lambda: recording.save(path, overwrite=True))
        on_disk = path.stat().st_size / EVENTS
        open_ = fastest_s(lambda: load(path))
        moments = np.random.default_rng(2).integers(0, recording.duration_ns, ROUNDS).tolist()
        ask = max(fastest_s(lambda at=at: load(path).memory_snapshot(at)) for at in moments) - open_
    return [
        ("save of 1 million events", "3 s", f"{save:.2f} s", save <= 3),
        ("load of 1 million events", "1 s", f"{open_:.2f} s", open_ <= 1),
        ("memory_snapshot() at any time of those", "0.5 s", f"{ask:.2f} s", ask <= 0.5),
        ("a recording on disk", "16 B/event", f"{on_disk:.1f} B/event", on_disk <= 16),
    ]
