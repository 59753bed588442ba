"""Try gpuviz on two real GPUs: ``python -m tests.gpu.two_gpus FOLDER``.

Ends by itself, prints one table and writes recordings and reports to the folder. With a single GPU
it runs what one GPU can show, and says what it left out.
"""

import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gpuviz
from gpuviz.analysis.collective_kernels import collective_kernels
from gpuviz.quantities import format_counted
from gpuviz.recording import Recording
from tests.gpu.device_programs import device_count, hand_over, spin
from tests.gpu.parallel_programs import enable_peer_access
from tests.gpu.ranks import connected, cost, measure, observed, path, run_ranks
from tests.gpu.without_host import without_host

Row = tuple[str, str, str, bool]

MIB = 1 << 20
COPIES = 20
ROUNDS = 1000
REDUCTIONS = 300
REDUCED = MIB  # elements of 4 bytes


def within(found: float, expected: float, most: float) -> bool:
    """Return whether a number differs from another by at most a share of that."""
    return abs(found - expected) <= most * expected


# ---- 1: two devices in one process


def devices_of_a_process(folder: Path) -> Iterator[Row]:
    import cupy

    for device in (0, 1):
        with cupy.cuda.Device(device):
            spin(cupy.zeros(1, "f"), 0)
            cupy.cuda.Device().synchronize()
    yield from _copies_of_a_process(folder, "staged")
    # Not recorded, since the time of the recording begins with its first activity.
    arrays = []
    for device in (0, 1):
        with cupy.cuda.Device(device):
            arrays.append([cupy.zeros(1, "f") for _ in range(2)])
            cupy.cuda.Device().synchronize()
    with gpuviz.record() as recorder:
        spans = {device: _spin_on_two_streams(device, arrays[device]) for device in (0, 1)}
    for device, (busy, idle, both) in spans.items():
        measured = recorder.recording.overlap(device).devices[0]
        for name, found, expected in (
            ("busy", measured.busy_ns / 1e6, busy),
            ("idle", measured.idle_ns / 1e6, idle),
            ("two kernels at once", measured.kernel_kernel_ns / 1e6, both),
        ):
            what = f"GPU {device}: {name}, against CUDA events"
            # Events lie around the kernels, so that what they add to busy time is missing in idle
            # time: both are within 1 % of the whole, and idle time, the smaller one, is not of its
            # own.
            whole = busy + idle if name == "idle" else expected
            is_close = abs(found - expected) <= 0.01 * whole
            yield what, f"{expected:.2f} ms, 1 % of {whole:.2f}", f"{found:.2f} ms", is_close
    yield from _memory_against_nvml()


def _copies_of_a_process(folder: Path, way: str) -> Iterator[Row]:
    with gpuviz.record() as recorder:
        handles = _copy_between_devices()
    for what, *rest in peer_copies(recorder.recording, *handles):
        yield f"{way}: {what}", *rest
    staged = recorder.recording.copies()["host_memory"].to_pylist() == ["staged"]
    yield f"{way}: through the host", str(way == "staged"), str(staged), staged == (way == "staged")
    without_host(recorder.recording).save(folder / f"peer_copies_{way}.gpuviz", overwrite=True)
    recorder.recording.report(folder / f"peer_copies_{way}.html", overwrite=True)


def _copy_between_devices() -> tuple[int, int]:
    """Copy from GPU 0 to GPU 1, each copy ordered by events; return the handles of the streams."""
    import cupy

    with cupy.cuda.Device(0):
        source, compute = cupy.zeros(COPIES * MIB, "u1"), cupy.cuda.Stream(non_blocking=True)
        cupy.cuda.Device().synchronize()
    with cupy.cuda.Device(1):
        target, copies = cupy.zeros(COPIES * MIB, "u1"), cupy.cuda.Stream(non_blocking=True)
        cupy.cuda.Device().synchronize()
    for number in range(COPIES):
        with cupy.cuda.Device(0), compute:
            source[: (number + 1) * MIB] += 1
            ready = compute.record()
        with cupy.cuda.Device(1), copies:
            copies.wait_event(ready)
            cupy.cuda.runtime.memcpyPeerAsync(
                target.data.ptr, 1, source.data.ptr, 0, (number + 1) * MIB, copies.ptr
            )
            done = copies.record()
        compute.wait_event(done)
    compute.synchronize()
    return compute.ptr, copies.ptr


def peer_copies(recording: Recording, compute: int, copies: int) -> Iterator[Row]:
    """Yield what is to be seen of 20 ordered copies between the GPUs."""
    rows = recording.derived["peer_copies"].to_pylist()
    yield "copies between GPUs, each once", str(COPIES), str(len(rows)), len(rows) == COPIES
    size_of = recording.table("activities")["bytes"].to_pylist()
    sizes = [size_of[row["activity"]] // MIB for row in rows]
    yield "their bytes", "1 to 20 MiB", str(sum(sizes)), sizes == list(range(1, COPIES + 1))
    ends = {(row["source_device"], row["destination_device"]) for row in rows}
    yield "source and destination", "{(0, 1)}", str(ends), ends == {(0, 1)}
    handle = {row["id"]: row["handle"] for row in recording.table("streams").to_pylist()}
    joined = {
        (handle.get(row["source_stream"]), handle.get(row["destination_stream"])) for row in rows
    }
    yield "streams that the arrows join", "the two", str(len(joined)), joined == {(compute, copies)}
    found = recording.hazards()
    yield "hazards of these ordered copies", "0", str(len(found)), not found
    links = [(link.first, link.second, link.access) for link in recording.device_links]
    yield "link between the GPUs", "one", str(recording.device_links), len(links) == 1


def _spin_on_two_streams(device: int, arrays: list[Any]) -> tuple[float, float, float]:
    """Return busy time, idle time and time with two kernels by CUDA events, in ms."""
    import cupy

    with cupy.cuda.Device(device):
        streams = [cupy.cuda.Stream(non_blocking=True) for _ in range(2)]
        base = streams[0].record(cupy.cuda.Event())
        marks = []
        for number in range(10):
            for place, stream in enumerate(streams):
                if place == 1 and number % 2:
                    continue
                with stream:
                    begin = stream.record(cupy.cuda.Event())
                    spin(arrays[place], 0.02 * (1 + place))
                    marks.append((begin, stream.record(cupy.cuda.Event())))
            cupy.cuda.Device().synchronize()
            time.sleep(0.02)
        spans = [tuple(cupy.cuda.get_elapsed_time(base, mark) for mark in pair) for pair in marks]
    edges = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    length = [0.0, 0.0, 0.0]
    running = 0
    for (at, change), (until, _) in pairwise(edges):
        running += change
        length[running] += until - at
    return length[1] + length[2], length[0], length[2]


def _memory_against_nvml() -> Iterator[Row]:
    import cupy
    import pynvml

    pynvml.nvmlInit()
    with gpuviz.record() as recorder:
        before, held = [], []
        for device in (0, 1):
            before.append(_used_by_nvml(device))
            with cupy.cuda.Device(device):
                held.append(cupy.zeros((device + 1) * 512 * MIB, "u1"))
                cupy.cuda.Device().synchronize()
            used = (_used_by_nvml(device) - before[-1]) / MIB
            reserved = gpuviz.memory_stats(device)["reserved_bytes.all.current"] / MIB
            what = f"GPU {device}: memory reserved, against NVML"
            is_close = within(used, reserved, 0.01)
            yield what, f"{used:.0f} MiB by NVML", f"{reserved:.0f} MiB", is_close
    peaks = [recorder.recording.peak(device).bytes // MIB for device in (0, 1)]
    yield "peaks of the GPUs", "512 and 1024 MiB", str(peaks), peaks == [512, 1024]


def _used_by_nvml(device: int) -> int:
    import cupy
    import pynvml

    bus = cupy.cuda.Device(device).pci_bus_id
    handle = pynvml.nvmlDeviceGetHandleByPciBusId(bus.encode())
    return int(pynvml.nvmlDeviceGetMemoryInfo(handle).used)


# ---- 2: two processes and their messages


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


# ---- 3: NCCL


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


# ---- 4: data-parallel training, and Dask


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


# ---- 5: hazards


def with_peer_access(folder: Path) -> Iterator[Row]:
    enable_peer_access()
    yield from _copies_of_a_process(folder, "direct")
    yield from hazards_across_devices(folder, "direct")


def hazards_across_devices(folder: Path, way: str) -> Iterator[Row]:
    for side in ("before", "behind"):
        for is_ordered in (False, True):
            with gpuviz.record(hazards=True) as recorder:
                wrong = hand_over(side, is_ordered=is_ordered)
            found = [each for each in recorder.recording.hazards() if each.kind == "RAW"]
            twin = "corrected" if is_ordered else "unordered"
            what = f"{way}: hazards of a copy, {twin} with the kernel {side} it"
            yield what, str(int(not is_ordered)), str(len(found)), len(found) == (not is_ordered)
            if is_ordered:
                yield f"{way}: wrong elements, {twin} {side}", "0", str(wrong), wrong == 0
            elif side == "before":
                without_host(recorder.recording).save(
                    folder / f"hazard_{way}.gpuviz", overwrite=True
                )
                recorder.recording.report(folder / f"hazard_{way}.html", overwrite=True)


# ---- the table


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
