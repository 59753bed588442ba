"""Two processes, a GPU each: messages, NCCL, and data-parallel training."""

import statistics
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gpuviz
from gpuviz.analysis.collective_kernels import collective_kernels
from tests.gpu.copies_between_gpus import MIB, Row
from tests.gpu.device_programs import spin
from tests.gpu.ranks import connected, cost, measure, observed, path, run_ranks

ROUNDS = 1000
REDUCTIONS = 300
REDUCED = MIB  # elements of 4 bytes


def processes_with_messages(gpus: tuple[int, int]) -> Iterator[Row]:
    name = "a GPU each" if len(set(gpus)) == 2 else "one GPU"
    with TemporaryDirectory() as temporary:
        ranks = Path(temporary) / "ranks"
        run_ranks(_take_turns, gpus, str(ranks))
        merged = gpuviz.merge(ranks)
    device_of = {device: each.rank for each in merged.processes for device in each.devices}
    rows = merged.table("activities").sort_by("time").to_pylist()
    order = [device_of[row["device"]] for row in rows if row["kind"] == "kernel"]
    turns = order[-2 * ROUNDS :]
    reversed_ = sum(rank != place % 2 for place, rank in enumerate(turns))
    what = f"two processes, {name}: kernels out of the order of {ROUNDS:,} rounds of messages"
    yield what, "0", str(reversed_), reversed_ == 0 and len(turns) == 2 * ROUNDS
    found = sorted(set(merged.table("devices")["uuid"].to_pylist()))
    is_found = "" not in found and len(found) == len(set(gpus))
    yield f"two processes, {name}: GPUs", str(len(set(gpus))), str(found), is_found


def _take_turns(rank: int, ranks: str, address: Any) -> None:
    """Run one kernel in each turn, and pass the turn on by a message."""
    import cupy

    array = cupy.zeros(1, "f")
    stream = cupy.cuda.Stream(non_blocking=True)
    with stream:
        spin(array, 0)
        stream.synchronize()
        with gpuviz.record(path(ranks, rank)), connected(rank, address) as other:
            for _ in range(ROUNDS):
                if rank == 1:
                    other.recv()
                spin(array, 0)
                stream.synchronize()
                other.send(None)
                if rank == 0:
                    other.recv()


def collectives(folder: Path) -> Iterator[Row]:
    for name, work, bound in (
        ("cupy.cuda.nccl", _reduce_by_cupy, 1.02),
        ("torch", _reduce_by_torch, 1.15),
    ):
        with TemporaryDirectory() as temporary:
            ranks = Path(temporary) / "ranks"
            ratio = cost(work, (0, 1), ranks)
            merged = gpuviz.merge(ranks)
            floor = cost(work, (0, 1), ranks, observer="CUPTI")
        if name == "torch":
            merged.report(folder / "nccl.html", overwrite=True)
        rows = merged.table("collectives").to_pylist()
        of_rank = [
            [
                row["sequence"]
                for row in rows
                if row["rank"] == rank and row["function"] == "all_reduce"
            ]
            for rank in (0, 1)
        ]
        is_same = of_rank[0] == of_rank[1] and len(of_rank[0]) >= REDUCTIONS
        counts = f"{len(of_rank[0])} and {len(of_rank[1])}"
        yield f"{name}: all-reduces of the ranks, same sequence", f"{REDUCTIONS}", counts, is_same
        met = merged.collectives().to_pylist()
        late = [row["last_rank"] for row in met if row["bytes"] == 4 * REDUCED]
        share = statistics.mean(rank == 1 for rank in late) if late else 0.0
        yield f"{name}: rank 1, which is late, came last", "> 90 %", f"{share:.0%}", share > 0.9
        known = int((collective_kernels(merged.tables) >= 0).sum())
        yield f"{name}: kernels found", str(len(rows)), str(known), known == len(rows)
        places = {
            (row["source"], row["destination"]) for row in rows if row["bytes"] == 4 * REDUCED
        }
        yield f"{name}: buffers", "one a rank", str(len(places)), len(places) == 2
        yield (
            f"{name}: {REDUCTIONS} steps recorded, against ranks without gpuviz",
            f"{bound}x, or within 5 % of CUPTI's records of kernels alone, {floor:.3f}x",
            f"{ratio:.3f}x",
            ratio <= max(bound, 1.05 * floor),
        )


def _reduce_by_cupy(rank: int, ranks: str, observer: str, address: Any) -> None:
    import cupy
    from cupy.cuda import nccl

    with observed(rank, ranks, observer):
        with connected(rank, address) as other:
            identity = nccl.get_unique_id() if rank == 0 else other.recv()
            if rank == 0:
                other.send(identity)
            communicator = nccl.NcclCommunicator(2, identity, rank)
        array, stream = cupy.zeros(REDUCED, "f"), cupy.cuda.Stream(non_blocking=True)
        cupy.cuda.Device().synchronize()
        arguments = (REDUCED, nccl.NCCL_FLOAT32, nccl.NCCL_SUM, stream.ptr)

        def steps() -> None:
            with stream:
                for _ in range(REDUCTIONS):
                    if rank == 1:
                        spin(array, 2e-4)
                    communicator.allReduce(array.data.ptr, array.data.ptr, *arguments)
                stream.synchronize()

        measure(rank, ranks, steps)
        communicator.destroy()


def _reduce_by_torch(rank: int, ranks: str, observer: str, _address: Any) -> None:
    import torch
    import torch.distributed as dist

    with observed(rank, ranks, observer):
        dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
        array = torch.zeros(REDUCED, device="cuda")
        late = torch.zeros(4 * REDUCED, device="cuda")

        def steps() -> None:
            for _ in range(REDUCTIONS):
                if rank == 1:
                    for _ in range(8):
                        late.add_(1)
                dist.all_reduce(array)
            torch.cuda.synchronize()

        measure(rank, ranks, steps)
        dist.destroy_process_group()


def data_parallel(folder: Path, gpus: int) -> Iterator[Row]:
    # NCCL refuses two ranks on one GPU.
    backend = "nccl" if gpus > 1 else "gloo"
    with TemporaryDirectory() as temporary:
        ranks = Path(temporary) / "ranks"
        ratio = cost(_train, (0, gpus - 1), ranks, backend)
        merged = gpuviz.merge(ranks)
    yield (
        f"data-parallel torch steps by {backend}, observed",
        "1.02x",
        f"{ratio:.3f}x",
        ratio <= 1.02,
    )
    names = [process.name for process in merged.processes]
    yield "its ranks in one picture", "2", str(names), len(names) == 2
    missing = [row["missing"] for row in merged.collectives().to_pylist()]
    if backend == "nccl":
        what = f"collectives without a rank, of {len(missing)}"
        is_met = bool(missing) and not any(missing)
        yield what, "0 of some", str(sum(map(bool, missing))), is_met
    merged.report(folder / "data_parallel.html", overwrite=True)


def _train(rank: int, ranks: str, observer: str, backend: str, _address: Any) -> None:
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    with observed(rank, ranks, observer):
        dist.init_process_group(backend)
        layer = torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)
        model = DistributedDataParallel(torch.nn.TransformerEncoder(layer, 6).cuda())
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        batch = torch.randn(32, 256, 512, device="cuda")

        def steps() -> None:
            for _ in range(20):
                optimizer.zero_grad()
                model(batch).square().mean().backward()
                optimizer.step()
            torch.cuda.synchronize()

        measure(rank, ranks, steps)
        dist.destroy_process_group()
