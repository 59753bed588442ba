"""Time of the hazard engine for a million launches on eight streams."""

from typing import Any

import numpy as np

from gpuviz import _core
from gpuviz.data.codes import Code
from tests.benchmarks.recording import Row, fastest_s

LAUNCHES = 1_000_000
BLOCKS_OF_LAUNCH = 4
STREAMS = 8
LIVE_BLOCKS = 10_000
# Between launches: a block is replaced, and a stream waits for its neighbour.
REPLACED_EVERY = 4
WAIT_EVERY = 16
BYTES = 4096
MOST_S = 1.0

Columns = dict[str, Any]


def program(launches: int, blocks: int) -> tuple[Columns, Columns, Columns]:
    """Return operations, accesses and blocks of a program without hazards.

    Each stream reads, writes and frees its own blocks.
    """
    generator = np.random.default_rng(1)
    replaced = launches // REPLACED_EVERY
    rows: list[tuple[int, int, int, int]] = [
        (Code.CREATE_STREAM, stream, 2, 0) for stream in range(1, STREAMS)
    ]
    rows += [(Code.ALLOCATE, block % STREAMS, block, 0) for block in range(blocks)]
    owner = np.arange(blocks)
    chosen = generator.integers(0, blocks // STREAMS, (launches, BLOCKS_OF_LAUNCH)) * STREAMS
    accessed = np.empty((launches, BLOCKS_OF_LAUNCH), np.uint32)
    for launch in range(launches):
        stream = launch % STREAMS
        places = chosen[launch] + stream
        accessed[launch] = owner[places]
        rows.append((Code.LAUNCH, stream, 0, BLOCKS_OF_LAUNCH))
        if launch % REPLACED_EVERY == 0:
            place = places[0]
            rows.append((Code.FREE, stream, int(owner[place]), 0))
            owner[place] = blocks + launch // REPLACED_EVERY
            rows.append((Code.ALLOCATE, stream, int(owner[place]), 0))
        if launch % WAIT_EVERY == 0:
            rows.append((Code.RECORD_EVENT, stream, stream, 0))
            rows.append((Code.WAIT_EVENT, (stream + 1) % STREAMS, stream, 0))
    code, number, object_, accesses = np.array(rows).T
    operations = {
        "code": code.astype(np.uint8),
        "stream": number.astype(np.uint32),
        "device": np.zeros(len(code), np.uint16),
        "object": object_.astype(np.uint32),
        "accesses": accesses.astype(np.uint32),
    }
    address = np.empty(blocks + replaced, np.uint64)
    address[:blocks] = np.arange(blocks) * BYTES
    for launch in range(0, launches, REPLACED_EVERY):
        address[blocks + launch // REPLACED_EVERY] = address[accessed[launch, 0]]
    count = accessed.size
    taken = {
        "block": accessed.ravel(),
        "mode": np.tile(np.array([3, 0, 0, 1], np.uint8), launches),
        "start": np.zeros(count, np.uint64),
        "stop": np.full(count, BYTES, np.uint64),
        "is_exact": (np.arange(count) % 2 == 0).astype(np.uint8),
    }
    sizes = np.full(len(address), BYTES, np.uint64)
    nothing = np.zeros(len(address), np.uint8)
    owners = {"address": address, "bytes": sizes, "is_pinned": nothing, "is_private": nothing}
    owners["is_host_written"] = nothing
    return operations, taken, owners


def rows() -> list[Row]:
    """Measure the engine alone."""
    columns = program(LAUNCHES, LIVE_BLOCKS)
    seconds = fastest_s(lambda: _core.hazards_of(*columns))
    found = len(_core.hazards_of(*columns)["kind"])
    what = f"hazards of {LAUNCHES:,} launches, {LIVE_BLOCKS:,} live blocks"
    return [
        (what, f"{MOST_S:.1f} s", f"{seconds:.2f} s", seconds <= MOST_S),
        ("reports of this correct program", "0", str(found), found == 0),
    ]
