"""Programs on a simulated GPU, and what a recording of them concludes."""

from collections.abc import Callable

import pyarrow as pa

import gpuviz
from gpuviz.advice.finding import Finding
from gpuviz.advice.findings import findings
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from gpuviz.simulation.arrays import SimulatedArray

MIB = 1 << 20


class View(SimulatedArray):
    """A part of an array, which it keeps."""

    __slots__ = ("array",)

    def __init__(self, array, offset=4 * MIB, nbytes=MIB):
        self.gpu, self.array, self.nbytes, self.ptr = array.gpu, array, nbytes, array.ptr + offset

    def __del__(self):
        pass


def recorded(program: Callable[[gpuviz.SimulatedGPU], None]) -> Recording:
    """Return the recording of a program that frees all its arrays."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu)
        gpu.synchronize()
    return recorder.recording


def found(program: Callable[[gpuviz.SimulatedGPU], None], rule: str) -> list[Finding]:
    """Return the findings of a rule about a program, small ones too."""
    return [each for each in findings(recorded(program), small=True) if each.rule == rule]


def saved(
    before: Callable[[gpuviz.SimulatedGPU], None], after: Callable[[gpuviz.SimulatedGPU], None]
) -> int:
    """Return by how many bytes the second program's peak is lower than the first's."""
    return recorded(before).peak().bytes - recorded(after).peak().bytes


def threads(elements: int) -> dict[str, tuple[int, ...]]:
    """Return the launch parameters of CuPy's elementwise kernels: a thread for each element."""
    return {"grid": (-(-elements // 128),), "block": (128,)}


def within(
    recording: Recording, filename: str, name: str = "library", source: str = ""
) -> Recording:
    """Return the recording as if a function of a library made every call for the program."""
    frames, stacks = recording.tables["frames"], recording.tables["stacks"]
    inner = {
        "id": 1 + max(frames["id"].to_pylist()),
        "name": name,
        "filename": filename,
        "line": 1,
        "cell": 0,
        "source": source,
        "installed": 1,
        "context": "",
        "context_line": 0,
    }
    rows = [
        {**row, "frames": [inner["id"], *row["frames"]]} if row["frames"] else row
        for row in stacks.to_pylist()
    ]
    changed = {
        "frames": pa.Table.from_pylist([*frames.to_pylist(), inner], schemas()["frames"]),
        "stacks": pa.Table.from_pylist(rows, schemas()["stacks"]),
    }
    return Recording({**recording.tables, **changed}, recording.manifest)


def without_frames(recording: Recording, function: str) -> Recording:
    """Return the recording as if a function had no frames, such as CuPy's in Cython."""
    frames, stacks = recording.tables["frames"], recording.tables["stacks"]
    names, installed = (
        dict(zip(frames["id"].to_pylist(), frames[name].to_pylist(), strict=True))
        for name in ("name", "installed")
    )
    rows = []
    for row in stacks.to_pylist():
        kept = [frame for frame in row["frames"] if names.get(frame) != function]
        own = (frame for frame in kept if not installed.get(frame))
        rows.append({**row, "frames": kept, "user_frame": next(own, next(iter(kept), 0))})
    changed = {"stacks": pa.Table.from_pylist(rows, schemas()["stacks"])}
    return Recording({**recording.tables, **changed}, recording.manifest)


def with_unknown_modes(recording: Recording, name: str) -> Recording:
    """Return a recording that does not know what kernels of a name do with their arrays."""
    tables = recording.tables
    numbers = {row["text"]: row["id"] for row in tables["strings"].to_pylist()}
    activities = tables["activities"].to_pylist()
    of_kernel = {row["correlation"] for row in activities if row["name"] == numbers[name]}
    rows = [
        row | {"mode": "unknown"} if row["correlation"] in of_kernel else row
        for row in tables["launch_blocks"].to_pylist()
    ]
    changed = {"launch_blocks": pa.Table.from_pylist(rows, schemas()["launch_blocks"])}
    return Recording({**tables, **changed}, recording.manifest)
