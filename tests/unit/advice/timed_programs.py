"""Programs on a simulated GPU with a simulated clock, and what a recording of them concludes."""

from collections.abc import Callable, Iterable

import pyarrow as pa

import gpuviz
from gpuviz.advice.finding import Finding
from gpuviz.advice.findings import findings
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording

_OF_HOST = {"host_to_device": "read", "device_to_host": "write"}
Program = Callable[[gpuviz.SimulatedGPU], None]


def timed(program: Program) -> Recording:
    """Return the recording of a program that waits for its work at the end."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu)
        gpu.synchronize()
    return recorder.recording


def found(program: Program, rule: str) -> list[Finding]:
    """Return the findings of a rule about a program that save something worth showing."""
    return [each for each in findings(timed(program)) if each.rule == rule]


def small(program: Program, rule: str) -> list[Finding]:
    """Return the findings of a rule about a program, small ones too."""
    return [each for each in findings(timed(program), small=True) if each.rule == rule]


def saved_ns(before: Program, after: Program) -> int:
    """Return by how many ns the second program is shorter than the first."""
    return timed(before).duration_ns - timed(after).duration_ns


def with_pinned_memory(recording: Recording, places: Iterable[tuple[int, int] | None]) -> Recording:
    """Return the recording as if the places of copies in pinned memory of the host were known.

    Args:
        recording: The recording.
        places: For each copy from or to the host, in the order of the launches, the number of a
            block and the offset in it; None if its memory is not known.
    """
    tables = dict(recording.tables)
    copies = [row for row in tables["activities"].to_pylist() if row["copy_kind"] in _OF_HOST]
    copies.sort(key=lambda row: row["correlation"])
    known = [(copy, place) for copy, place in zip(copies, places, strict=True) if place is not None]
    touched = [
        {"correlation": copy["correlation"], "block": (block + 1) << 40, "content": 0}
        | {"address": ((block + 1) << 40) + offset, "bytes": copy["bytes"]}
        | {"mode": _OF_HOST[copy["copy_kind"]], "element": 0, "stride": 0}
        for copy, (block, offset) in known
    ]
    alloc = {"time": 0, "action": "alloc", "size": 1 << 40, "requested_size": 1 << 40}
    alloc |= {"stack": 0, "thread": 0, "range": 0}
    blocks = sorted({row["block"] for row in touched})
    allocated = [alloc | {"address": block} for block in blocks]
    for name, rows in (("launch_blocks", touched), ("host_memory_events", allocated)):
        added = pa.Table.from_pylist(rows, schemas()[name])
        tables[name] = pa.concat_tables([tables[name], added]).unify_dictionaries()
    return Recording(tables, recording.manifest)


def with_cells(recording: Recording, cells: Iterable[tuple[int, int]]) -> Recording:
    """Return the recording as if it had been made in notebook cells with these times."""
    rows = [
        {"id": number, "time": time, "end": end, "name": 0, "thread": 0, "parent": 0}
        for number, (time, end) in enumerate(cells, 1)
    ]
    ranges = pa.Table.from_pylist([row | {"kind": "cell"} for row in rows], schemas()["ranges"])
    return Recording({**recording.tables, "ranges": ranges}, recording.manifest)
