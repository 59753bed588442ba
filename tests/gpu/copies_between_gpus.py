"""Copies between two GPUs of one process: what is recorded of them, and their hazards."""

import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import gpuviz
from gpuviz.recording import Recording
from tests.gpu.device_programs import hand_over, spin
from tests.gpu.parallel_programs import enable_peer_access
from tests.gpu.without_host import without_host

Row = tuple[str, str, str, bool]

MIB = 1 << 20
COPIES = 20


def within(found: float, expected: float, most: float) -> bool:
    """Return whether a number differs from another by at most a share of that."""
    return abs(found - expected) <= most * expected


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
