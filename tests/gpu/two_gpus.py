"""Try gpuviz on two real GPUs: ``python -m tests.gpu.two_gpus FOLDER``.

Ends by itself, prints one table and writes recordings and reports to the folder. With a single GPU
it runs what one GPU can show, and says what it left out.
"""

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gpuviz
from gpuviz.quantities import format_counted
from tests.gpu.copies_between_gpus import (
    Row,
    devices_of_a_process,
    hazards_across_devices,
    with_peer_access,
)
from tests.gpu.device_programs import device_count
from tests.gpu.ranks_of_two_gpus import collectives, data_parallel, processes_with_messages


def dask_workers(folder: Path, gpus: int) -> Iterator[Row]:
    import distributed

    dask_cuda = find_spec("dask_cuda") and import_module("dask_cuda")
    options = {} if dask_cuda else {"threads_per_worker": 1}
    make = dask_cuda.LocalCUDACluster if dask_cuda else distributed.LocalCluster
    with (
        TemporaryDirectory() as temporary,
        make(
            n_workers=gpus, dashboard_address=":0", local_directory=temporary, **options
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        _tasks(client, "warm")
        took: dict[str, list[float]] = {"plain": [], "recorded": []}
        for number in range(3):
            took["plain"].append(_tasks(client, f"plain{number}"))
            with gpuviz.dask.record(Path(temporary) / f"run{number}") as recorded:
                took["recorded"].append(_tasks(client, f"recorded{number}"))
        ratio = min(took["recorded"]) / min(took["plain"])
        yield "Dask tasks, recorded", "1.02x", f"{ratio:.3f}x", ratio <= 1.02
        recording = recorded.recording
        texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
        names = {texts[row["name"]] for row in recording.table("ranges").to_pylist()}
        named = sum(f"recorded2-{number}" in names for number in range(40))
        yield "Dask tasks named", "40", str(named), named == 40
        workers = len(recording.processes)
        yield "Dask workers in one picture", str(gpus), str(workers), workers == gpus
        recording.report(folder / "dask.html", overwrite=True)


def _tasks(client: Any, name: str) -> float:
    begin = time.perf_counter()
    client.gather([client.submit(_task, n, key=f"{name}-{n}") for n in range(40)])
    return time.perf_counter() - begin


def _task(number: int) -> int:
    import cupy

    array = cupy.full((4096, 4096), number % 7, "f")
    for _ in range(10):
        product = array @ array
    return int(product[0, 0])


def parts(folder: Path) -> Iterator[tuple[str, int, Callable[[], Iterator[Row]]]]:
    """Yield each part with the GPUs that it needs."""
    gpus = min(device_count(), 2)
    yield "two devices in one process", 2, lambda: devices_of_a_process(folder)
    yield "two processes on one GPU", 1, lambda: processes_with_messages((0, 0))
    yield "two processes, a GPU each", 2, lambda: processes_with_messages((0, 1))
    yield "NCCL", 2, lambda: collectives(folder)
    yield "data-parallel torch", 1, lambda: data_parallel(folder, gpus)
    yield "Dask", 1, lambda: dask_workers(folder, gpus)
    yield "hazards across devices", 2, lambda: hazards_across_devices(folder, "staged")
    yield "copies by peer access", 2, lambda: with_peer_access(folder)


def main(folder: Path) -> int:
    """Run the parts and print the table; return the exit status."""
    folder.mkdir(parents=True, exist_ok=True)
    rows: list[Row] = []
    for name, needed, part in parts(folder):
        if device_count() < needed:
            rows.append((name, format_counted(needed, "GPU"), "not run", False))
            continue
        begin = time.monotonic()
        try:
            rows += part()
        except Exception:  # noqa: BLE001 - the other parts still run
            traceback.print_exc()
            rows.append((name, "no error", "failed", False))
        print(f"{name}: {time.monotonic() - begin:.0f} s", file=sys.stderr, flush=True)
    for what, expected, found, is_met in rows:
        print(f"{'ok ' if is_met else 'NOT'} {what}: {found} (must be {expected})")
    return int(not all(is_met for *_, is_met in rows))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
