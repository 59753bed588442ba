"""Programs on a simulated GPU with a simulated clock, and what a recording of them concludes."""

from collections.abc import Callable, Iterable

import pyarrow as pa

import gpuviz
from gpuviz.advice.finding import Finding
from gpuviz.advice.findings import findings
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording

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


def with_cells(recording: Recording, cells: Iterable[tuple[int, int]]) -> Recording:
    """Return the recording as if it had been made in notebook cells with these times."""
    rows = [
        {"id": number, "time": time, "end": end, "name": 0, "thread": 0, "parent": 0}
        for number, (time, end) in enumerate(cells, 1)
    ]
    ranges = pa.Table.from_pylist([row | {"kind": "cell"} for row in rows], schemas()["ranges"])
    return Recording({**recording.tables, "ranges": ranges}, recording.manifest)
