"""Programs that use two GPUs: ``python -m tests.gpu.parallel_programs FOLDER [TRAINING ...]``.

Data-parallel training whose all-reduces run beside the backward pass or after it, or wait for a
late rank, or whose parameters are sharded, and a model that is split over two GPUs. The recordings
name neither host nor folders.
"""

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gpuviz
from tests.gpu.ranks import observed, run_ranks
from tests.gpu.without_host import without_host

WIDTH = 4096
LAYERS = 6
STEPS = 4
LATE_S = 0.004
WHOLE_MODEL_MB = 4096
LAYER_MB = 60
PARTS = 8
TURNS = 20
RELAYED = 16 << 20  # elements of 4 bytes
PART_ROWS = 4096
# Every way to train: the size of a bucket in MB, or None for sharded parameters, and how late
# rank 1 is.
TRAININGS: dict[str, tuple[int | None, float]] = {
    "hidden": (LAYER_MB, 0.0),
    "exposed": (WHOLE_MODEL_MB, 0.0),
    "late_rank": (LAYER_MB, LATE_S),
    "sharded": (None, 0.0),
}


def train(
    rank: int, ranks: str, observer: str, bucket_mb: int | None, late_s: float, _: Any
) -> None:
    """Train a model of equal layers on two ranks."""
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.ModuleList(
                torch.nn.Linear(WIDTH, WIDTH, bias=False) for _ in range(LAYERS)
            )

        def forward(self, batch: Any) -> Any:
            for layer in self.layers:
                batch = torch.relu(layer(batch))
            return batch

    # NCCL loads gpuviz's plugin for communicators that are made during a recording.
    start = Path(ranks).with_name("start")
    start.mkdir(exist_ok=True)
    with observed(rank, str(start), observer):
        dist.init_process_group("nccl", device_id=torch.device("cuda", 0))
    model: Any = Model().cuda()
    if bucket_mb is None:
        for part in (*model.layers, model):
            fully_shard(part)
    else:
        model = DistributedDataParallel(
            model, bucket_cap_mb=bucket_mb, gradient_as_bucket_view=True
        )
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(1024, WIDTH, device="cuda")

    def step() -> None:
        if rank == 1 and late_s:
            torch.cuda._sleep(int(late_s * 1.7e9))
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    for _ in range(3):
        step()
    torch.cuda.synchronize()
    with observed(rank, ranks, observer):
        begin = time.perf_counter()
        for _ in range(STEPS):
            step()
        torch.cuda.synchronize()
        took = time.perf_counter() - begin
    Path(ranks, f"seconds{rank}").write_text(str(took / STEPS))
    dist.destroy_process_group()


def split_model() -> Callable[[], float]:
    """Return a function that runs a model whose halves are on two GPUs, and returns ms."""
    import cupy

    place = []
    for device in (0, 1):
        with cupy.cuda.Device(device):
            place.append(
                {
                    "weights": cupy.full((WIDTH, WIDTH), 1e-4, "f"),
                    "input": cupy.ones((PARTS, PART_ROWS, WIDTH), "f"),
                    "output": cupy.zeros((PARTS, PART_ROWS, WIDTH), "f"),
                    "stream": cupy.cuda.Stream(non_blocking=True),
                    "copies": cupy.cuda.Stream(non_blocking=True),
                }
            )
            cupy.cuda.Device().synchronize()

    def half(device: int, part: int) -> Any:
        own = place[device]
        with cupy.cuda.Device(device), own["stream"] as stream:
            cupy.matmul(own["input"][part], own["weights"], out=own["output"][part])
            return stream.record()

    def hand_over(part: int, ready: Any) -> Any:
        source, target = place[0]["output"][part], place[1]["input"][part]
        with cupy.cuda.Device(0):
            place[0]["copies"].wait_event(ready)
            cupy.cuda.runtime.memcpyPeerAsync(
                target.data.ptr, 1, source.data.ptr, 0, source.nbytes, place[0]["copies"].ptr
            )
            return place[0]["copies"].record()

    def run() -> float:
        begin = time.perf_counter()
        for part in range(PARTS):
            copied = hand_over(part, half(0, part))
            place[1]["stream"].wait_event(copied)
            half(1, part)
        for device in (0, 1):
            with cupy.cuda.Device(device):
                cupy.cuda.Device().synchronize()
        return (time.perf_counter() - begin) * 1e3

    return run


def relay() -> Callable[[], float]:
    """Return a function that hands arrays from one GPU to the other in turn, and returns ms."""
    import cupy

    place = []
    for device in (0, 1):
        with cupy.cuda.Device(device):
            array, stream = cupy.zeros(RELAYED, "f"), cupy.cuda.Stream(non_blocking=True)
            cupy.cuda.Device().synchronize()
            place.append((array, stream))

    def run() -> float:
        begin = time.perf_counter()
        for turn in range(TURNS):
            (source, ran), (target, runs) = place[turn % 2], place[1 - turn % 2]
            with cupy.cuda.Device(turn % 2), ran:
                cupy.add(source, 1, out=source)
                ready = ran.record()
            with cupy.cuda.Device(1 - turn % 2):
                runs.wait_event(ready)
                cupy.cuda.runtime.memcpyPeerAsync(
                    *(target.data.ptr, 1 - turn % 2, source.data.ptr, turn % 2),
                    *(source.nbytes, runs.ptr),
                )
        for device in (0, 1):
            with cupy.cuda.Device(device):
                cupy.cuda.Device().synchronize()
        return (time.perf_counter() - begin) * 1e3

    return run


def enable_peer_access() -> None:
    """Let each GPU access the memory of the other one."""
    import cupy

    for device in (0, 1):
        with cupy.cuda.Device(device):
            cupy.cuda.runtime.deviceEnablePeerAccess(1 - device)


def _record_copies(folder: Path) -> None:
    """Record what copies from GPU to GPU, first through the host and then by peer access."""
    programs = {"relay": relay(), "pipeline": split_model()}
    for way in ("staged", "direct"):
        if way == "direct":
            enable_peer_access()
        for name, run in programs.items():
            took = min(run() for _ in range(5))
            with gpuviz.record() as recorder:
                recorded_ms = run()
            recording = without_host(recorder.recording)
            recording.save(folder / f"{name}_{way}.gpuviz", overwrite=True)
            advice = [(each.rule, each.saved_ns / 1e6) for each in recording.findings()]
            print(f"{name}, {way}: {took:.2f} ms, recorded {recorded_ms:.2f} ms, {advice}")


def _record_trainings(folder: Path, names: Iterable[str]) -> None:
    for name in names:
        options = TRAININGS[name]
        with TemporaryDirectory() as temporary:
            ranks = Path(temporary) / "ranks"
            took = {}
            for observer in ("", "gpuviz"):
                run_ranks(train, (0, 1), str(ranks), observer, *options)
                seconds = [float((ranks / f"seconds{rank}").read_text()) for rank in (0, 1)]
                took["recorded" if observer else "plain"] = f"{1e3 * max(seconds):.2f} ms"
            merged = gpuviz.merge(ranks)
        without_host(merged).save(folder / f"training_{name}.gpuviz", overwrite=True)
        print(f"training, {name}: {took} a step", flush=True)


def main(folder: Path, trainings: Iterable[str]) -> int:
    """Record all of them, or only some trainings."""
    folder.mkdir(parents=True, exist_ok=True)
    chosen = [*trainings]
    if not chosen:
        _record_copies(folder)
    _record_trainings(folder, chosen or TRAININGS)
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
