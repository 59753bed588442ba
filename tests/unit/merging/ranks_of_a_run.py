"""Recordings of ranks whose collectives are known, made by programs on simulated GPUs."""

import pyarrow as pa

import gpuviz
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.merging.processes_of_a_run import process

MS = 1_000_000
KERNEL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
BYTES = 4 << 20


def ranks(arrivals, lasting=MS, **facts):
    """Return the recordings of ranks that meet in collectives.

    Args:
        arrivals: For each collective, when each rank arrives at it, in ns of its process.
        lasting: How long each collective takes after the last rank has arrived, in ns.
        facts: Of the manifests.
    """
    count = len(arrivals[0])
    ends = [max(each) + lasting for each in arrivals]
    return [
        process(rank(number, count, [each[number] for each in arrivals], ends), number, **facts)
        for number in range(count)
    ]


def rank(number, count, arrivals, ends):
    """Return the recording of a rank that arrives at collectives, each over at a known time."""
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    now = 0
    with gpuviz.record(device=gpu) as recorder:
        buffer = gpu.empty(BYTES)
        for arrival, end in zip(arrivals, ends, strict=True):
            gpu.work_on_host((arrival - now) / 1e9)
            now = arrival
            gpu.launch(KERNEL, reads=[buffer], writes=[buffer], duration=(end - arrival) / 1e9)
        gpu.synchronize()
    return with_collectives(recorder.recording, number, count)


def with_collectives(recording, number, count, **columns):
    """Return a recording with the row of a collective after each launch of NCCL's kernel."""
    names = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    calls = {row["correlation"]: row for row in recording.table("api_calls").to_pylist()}
    kernels = [
        row
        for row in recording.table("activities").to_pylist()
        if names.get(row["name"], "").startswith("nccl")
    ]
    rows = [
        {
            "time": calls[kernel["correlation"]]["end"] + 1,
            "function": "all_reduce",
            "communicator": 2**63 + 5,
            "rank": number,
            "ranks": count,
            "sequence": sequence,
            "peer": -1,
            "count": BYTES // 4,
            "element": "float32",
            "bytes": BYTES,
            "source": 0,
            "destination": 0,
            "stream": kernel["stream"],
            "algorithm": "ring",
            "protocol": "ll",
            "channels": 2,
            "thread": calls[kernel["correlation"]]["thread"],
            "range": 0,
            **columns,
        }
        for sequence, kernel in enumerate(kernels)
    ]
    schema = schemas()["collectives"]
    table = pa.Table.from_pylist(rows, schema=schema) if rows else schema.empty_table()
    return Recording(dict(recording.tables) | {"collectives": table}, recording.manifest)
