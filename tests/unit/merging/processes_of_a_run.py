"""Recordings of processes that ran together, made by programs on simulated GPUs."""

import json
import random
from dataclasses import replace

import gpuviz
from gpuviz.recording import Recording

BOOT = "6b1f0c52-0000-0000-0000-000000000001"


def program(seed):
    """Return the recording of a random program."""
    draw = random.Random(seed)
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    before = [gpu.empty(draw.randrange(1, 1 << 20)) for _ in range(draw.randrange(3))]
    pinned = [gpu.empty_pinned(draw.randrange(1, 1 << 20))]
    with gpuviz.record(device=gpu) as recorder:
        streams = [gpu.null_stream, gpu.Stream(), gpu.Stream(non_blocking=True)]
        arrays = list(before)
        for step in range(draw.randrange(5, 25)):
            with gpuviz.range(f"step {step % 3}"), draw.choice(streams) as stream:
                arrays.append(gpu.empty(draw.randrange(1, 3 << 20)))
                used = draw.sample(arrays, min(2, len(arrays)))
                gpu.launch(f"kernel {step % 4}", writes=used, duration=draw.uniform(1e-6, 1e-4))
                if draw.random() < 0.3:
                    gpu.copy_to_host(arrays[-1])
                if draw.random() < 0.3:
                    pinned.append(gpu.empty_pinned(draw.randrange(1, 1 << 20)))
                if draw.random() < 0.3:
                    stream.synchronize()
                if draw.random() < 0.4:
                    arrays.pop(draw.randrange(len(arrays)))
                gpu.work_on_host(draw.uniform(1e-6, 1e-4))
        gpu.synchronize()
    return recorder.recording


def process(recording, number, *, ranks=0, boot=BOOT, start=0, **facts):
    """Return a recording as that of a process, which began ``start`` ns after the host."""
    launch = {"rank": number, "ranks": ranks} if ranks else {}
    known = {
        "process_id": 1000 + number,
        "boot_id": boot,
        "host": "node0",
        "start_monotonic_ns": 10**12 + start,
        "start_unix_ns": 1_700_000_000 * 10**9 + start,
        "launch": launch,
    }
    manifest = replace(recording.manifest, **(known | facts))
    return Recording(recording.tables, manifest, dict(recording.derived))


def rows(recording, table):
    """Return the rows of a table as a sorted list of texts, to compare contents."""
    return sorted(json.dumps(row, default=str) for row in recording.table(table).to_pylist())
