"""A recording with something in most tables, which each release leaves as a test file.

Usage: python -m tests.unit.formats.record_release VERSION
"""

import sys
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

import gpuviz
from gpuviz.recording import Recording

FOLDER = Path(__file__).parent / "releases"
MIB = 1 << 20


def program(gpu: gpuviz.SimulatedGPU) -> list[object]:
    """Run steps on two streams, with pinned memory, a hazard and an array that is kept."""
    streams = [gpu.Stream(non_blocking=True) for _ in range(2)]
    gpuviz.name_stream(streams[0], "compute")
    host = gpu.empty_pinned(4 * MIB)
    kept: list[object] = []
    for number in range(8):
        with gpuviz.range("step"):
            with streams[number % 2]:
                x, y = gpu.empty(4 * MIB), gpu.empty(2 * MIB)
                gpu.copy_to_device(x, host=host)
                gpu.launch("scale", reads=[x], writes=[y], duration=4e-4)
            with streams[1 - number % 2]:
                gpu.launch("read", reads=[y], writes=[], duration=1e-4)
            gpu.record_stream(x, streams[1 - number % 2])
            if number % 4 == 0:
                kept.append(y)
    gpu.synchronize()
    gpu.empty_cache()
    return kept


def record() -> Recording:
    """Return the recording without what belongs to this machine, and with its conclusions."""
    gpu = gpuviz.SimulatedGPU(memory=256 * MIB, real_time=False)
    with gpuviz.record(device=gpu, hazards=True) as recorder:
        _kept = program(gpu)
    made = recorder.recording
    frames = made.tables["frames"]
    names = pa.array([Path(each).name for each in frames["filename"].to_pylist()])
    column = frames.schema.names.index("filename")
    anywhere = frames.set_column(column, frames.schema.field(column), names.dictionary_encode())
    machine = {"host": "host", "host_hash": "0" * 16, "boot_id": "", "platform": "Linux"}
    manifest = replace(made.manifest, program=("program.py",), **machine)
    recording = Recording({**made.tables, "frames": anywhere.cast(frames.schema)}, manifest)
    recording.findings()
    recording.iterations()
    recording.what_if()
    return recording


if __name__ == "__main__":
    record().save(FOLDER / f"{sys.argv[1]}.gpuviz", overwrite=True)
