"""Programs of two processes that each see one GPU."""

import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from multiprocessing import get_context
from multiprocessing.connection import Client, Listener
from pathlib import Path
from typing import Any

import gpuviz
from tests.benchmarks.streams import KERNELS, bare_cupti

REPEATS = 5
TIMEOUT_S = 240
SECRET = b"ranks"


@contextmanager
def connected(rank: int, address: Any) -> "Iterator[Any]":
    if rank == 0:
        with Listener(address, authkey=SECRET) as listener, listener.accept() as connection:
            yield connection
        return
    deadline = time.monotonic() + TIMEOUT_S
    while True:
        try:
            connection = Client(address, authkey=SECRET)
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            break
    with connection:
        yield connection


def path(ranks: str, rank: int) -> Path:
    return Path(ranks, f"rank{rank}.gpuviz")


def run_ranks(work: Callable[..., None], gpus: tuple[int, int], *arguments: Any) -> None:
    """Run work in two processes that each see one GPU."""
    Path(str(arguments[0])).mkdir(parents=True, exist_ok=True)
    context = get_context("spawn")
    address = ("127.0.0.1", _free_port())
    children = []
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    for rank, gpu in enumerate(gpus):
        device = visible[gpu] if visible != [""] else str(gpu)
        variables = {
            "CUDA_VISIBLE_DEVICES": device,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": "2",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(address[1]),
        }
        child = context.Process(
            target=_start, args=(variables, work, rank, *arguments, address), daemon=True
        )
        child.start()
        children.append(child)
    for child in children:
        child.join(TIMEOUT_S)
        if child.exitcode is None:
            child.kill()
    if any(child.exitcode != 0 for child in children):
        raise RuntimeError(f"ranks ended with {[child.exitcode for child in children]}")


def _start(variables: dict[str, str], work: Callable[..., None], *arguments: Any) -> None:
    os.environ.update(variables)
    work(*arguments)


def _free_port() -> int:
    with Listener(("127.0.0.1", 0)) as listener:
        return int(listener.address[1])


def cost(
    work: Callable[..., None],
    gpus: tuple[int, int],
    ranks: Path,
    *arguments: Any,
    observer: str = "gpuviz",
) -> float:
    """Return how much longer the fastest steps take than in ranks that nothing observes."""
    took = []
    for each in ("", observer):
        run_ranks(work, gpus, str(ranks), each, *arguments)
        took.append(
            statistics.mean(float((ranks / f"seconds{rank}").read_text()) for rank in (0, 1))
        )
    plain, observed = took
    return observed / plain


def observed(rank: int, ranks: str, observer: str) -> AbstractContextManager[Any]:
    """Observe a rank by ``gpuviz``, by ``CUPTI``'s records of kernels alone, or by nothing.

    Nothing leaves the process as it is, so that NCCL loads no profiler.
    """
    if observer == "gpuviz":
        return gpuviz.record(path(ranks, rank))
    return bare_cupti(KERNELS) if observer == "CUPTI" else nullcontext()


def measure(rank: int, ranks: str, steps: Callable[[], None]) -> None:
    """Write how long the fastest steps take, in seconds; the first ones do not count."""
    took = []
    for _ in range(1 + REPEATS):
        begin = time.perf_counter()
        steps()
        took.append(time.perf_counter() - begin)
    Path(ranks, f"seconds{rank}").write_text(str(min(took[1:])))
