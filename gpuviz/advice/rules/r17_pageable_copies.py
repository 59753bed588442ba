"""R17: copies of pageable memory that would be faster from and to pinned memory."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import line_numbers, longest_lines
from gpuviz.advice.kernels.bandwidth import possible_bandwidth
from gpuviz.advice.needless.partly_used_copies import partly_used_copies
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.replay.trace import COPY, KERNEL
from gpuviz.advice.rule import Rule
from gpuviz.advice.rules.r44_streams_that_never_overlap import apart_streams
from gpuviz.advice.source.libraries import MODULES_ON_THE_GPU, is_of, makes_modules
from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.launches import durations, have_frame, stacks_of
from gpuviz.data.codes import CallKind
from gpuviz.data.columns import codes, distinct, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES
from gpuviz.quantities import format_bytes, format_count, format_duration

RULES = (
    Rule(
        "R17",
        "copies of pageable memory",
        "a line makes at least four copies of 64 KiB or more with kernels between them, other than "
        "those of R84, and the host spends 1 % of the time in their transfers; the saving assumes "
        "the rate of the recording's own pinned copies, else 25 GB/s, or 50 GB/s if the GPU has "
        "PCIe 5, as an H100 SXM or H200, less what pinning costs once",
        "`cupyx.empty_pinned`, used again; with PyTorch a `DataLoader` with `pin_memory=True`, and "
        "`non_blocking=True`",
    ),
)

_OF_CUPY = (
    "Allocate the host's arrays with cupyx.empty_pinned (or cupyx.empty_like_pinned) once and "
    "reuse them. Asynchronous copies then return at once, so that the host must synchronize before "
    "it reads a result or changes a source."
)
_OF_NUMBA = (
    "Allocate the host's arrays with `cuda.pinned_array` (or `cuda.pinned_array_like`) once and "
    "reuse them. Copies on a stream then return at once, so that the host must synchronize before "
    "it reads a result or changes a source."
)
_OF_TORCH = (
    "Let the loader pin its batches (`DataLoader(..., pin_memory=True)`), or call `.pin_memory()` "
    "once for tensors that are used again, and copy with `.to(device, non_blocking=True)`. Such "
    "copies return at once: kernels wait for them by themselves, but the host must synchronize "
    "before it reads a result or changes a source."
)
_TO_HOST_OF_TORCH = (
    "Allocate the host's tensors with `torch.empty(..., pin_memory=True)` once and reuse them, and "
    "copy with `host.copy_(tensor, non_blocking=True)`. Such copies return at once, so that the "
    "host must synchronize before it reads a result."
)
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_TO_HOST = _COPY_KINDS.index("device_to_host")
_MEMORIES = DICTIONARIES["activities", "host_memory"]
# CUDA copies less from pageable memory without blocking the host (CUDA Runtime API, "API
# synchronization behavior").
_SMALLEST = 64 << 10
# Of pinned memory over PCIe with 16 lanes, versions 4 and 5.
_RATE_OF_PCIE_4, _RATE_OF_PCIE_5 = 25e9, 50e9
# Of GPUs with PCIe 5, from the H100 SXM on, in bytes per second; the A100 with PCIe 4 has 2.0 TB/s.
_BANDWIDTH_OF_PCIE_5 = 2_900_000_000_000
# Of pinning memory, in bytes per second: an estimate, a quarter of a second for a GiB.
_PINNING_RATE = 4e9
# Pinning memory costs more than a copy, so it has to be used again.
_LEAST_COPIES = 4


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find large copies of pageable memory.

    Trigger: copies of at least 64 KiB from or to pageable memory, which the host spends at least
    1 % of the recording on: ``transfer_ns`` of the derived table ``host_waits``, without the time
    in which it waits for earlier work. One line makes at least four, with kernels between them:
    weights that are loaded at the start are not worth pinning. Most of what R84 finds need not be
    copied at all.

    Saving: the recording's `Schedule`, replayed with bytes / rate as the durations of these copies
    if that is shorter, and without the host waiting in asynchronous ones. The rate is that of the
    recording's own pinned copies of this size in the same direction, then it is ``likely``; else
    25 GB/s, or 50 GB/s if the GPU has PCIe 5 by the bandwidth of its memory, and it is
    ``possible``. Pinning memory once, for the largest copy of each line, is
    subtracted.
    """
    recording = schedule.recording
    if not recording.tables["api_calls"].num_rows:
        return
    activities = recording.tables["activities"]
    memories = codes(activities["host_memory"], _MEMORIES)[schedule.rows]
    sizes = plain(activities["bytes"])[schedule.rows]
    large = (schedule.kind == COPY) & (sizes >= _SMALLEST)
    pageable = large & (memories == _MEMORIES.index("pageable")) & (schedule.call >= 0)
    for each in partly_used_copies(schedule):  # those of R84
        pageable[each.work] = False
    pinned = large & (memories == _MEMORIES.index("pinned"))
    directions = codes(activities["copy_kind"], _COPY_KINDS)[schedule.rows]
    for device in recording.devices:
        work = np.flatnonzero(pageable & (schedule.device == device))
        work = _repeated(recording, schedule, work)
        measured = {
            int(direction): _rate(schedule, sizes, pinned & (directions == direction))
            for direction in np.unique(directions[work])
        }
        typical = _RATE_OF_PCIE_4
        if possible_bandwidth(recording, device) >= _BANDWIDTH_OF_PCIE_5:
            typical = _RATE_OF_PCIE_5
        rates = np.array([measured[each] or typical for each in directions[work].tolist()])
        copies = _Copies(work, sizes[work], rates, tuple(measured.values()), typical)
        host_ns = int(_transfer_ns(recording)[distinct(schedule.call[work])].sum())
        if work.size and host_ns >= schedule.relevant_ns:
            yield _finding(recording, schedule, copies)


@dataclass(frozen=True, slots=True)
class _Copies:
    """Pageable copies of a device.

    Attributes:
        work: Their activities.
        sizes: Their bytes.
        rates: What pinned memory would reach, in bytes per second.
        measured: The rates of the recording's pinned copies, for each direction; None without any.
        typical: The rate that pinned memory usually reaches with this device.
    """

    work: np.ndarray
    sizes: np.ndarray
    rates: np.ndarray
    measured: tuple[float | None, ...]
    typical: float


def _repeated(recording: RecordingData, schedule: Schedule, work: np.ndarray) -> np.ndarray:
    """Return the copies of lines that copy several times, with kernels between the copies."""
    lines = line_numbers(recording, stacks_of(recording.tables, schedule.call[work]))
    is_launched = (schedule.kind == KERNEL) & (schedule.call >= 0)
    launched = np.sort(schedule.launch_begin()[is_launched], kind="stable")
    before = np.searchsorted(launched, schedule.launch_begin()[work])
    rounds = distinct(lines * (len(launched) + 1) + before) // (len(launched) + 1)
    counts = np.bincount(rounds, minlength=int(lines.max(initial=-1)) + 1)
    repeated: np.ndarray = work[counts[lines] >= _LEAST_COPIES]
    return repeated


def _pinning_ns(recording: RecordingData, schedule: Schedule, copies: _Copies) -> int:
    """Return how long pinning memory for the largest copy of each line takes."""
    lines = line_numbers(recording, stacks_of(recording.tables, schedule.call[copies.work]))
    largest = np.zeros(int(lines.max(initial=-1)) + 1, np.int64)
    np.maximum.at(largest, lines, copies.sizes)
    return int(largest.sum() * 1e9 / _PINNING_RATE)


def _rate(schedule: Schedule, sizes: np.ndarray, copies: np.ndarray) -> float | None:
    """Return bytes per second of some copies; None without copies."""
    total_ns = int(schedule.duration[copies].sum())
    return float(sizes[copies].sum()) * 1e9 / total_ns if total_ns else None


def _transfer_ns(recording: RecordingData) -> np.ndarray:
    """Return how long each call of ``api_calls`` blocked the host during its transfer, in ns."""
    import pyarrow.compute as pc

    waits = derived(recording)["host_waits"]
    calls, transfer = plain(waits["call"]), plain(pc.fill_null(waits["transfer_ns"], 0))
    blocked = np.zeros(recording.tables["api_calls"].num_rows, np.int64)
    np.add.at(blocked, calls[calls >= 0], transfer[calls >= 0])
    return blocked


def _finding(recording: RecordingData, schedule: Schedule, copies: _Copies) -> Finding:
    work, sizes, calls = copies.work, copies.sizes, recording.tables["api_calls"]
    device = int(schedule.device[work[0]])
    own, gpu_ns = distinct(schedule.call[work]), int(schedule.duration[work].sum())
    shorter = schedule.duration.copy()
    at_rate = (sizes * 1e9 / copies.rates).astype(np.int64)
    shorter[work] = np.minimum(shorter[work], at_rate)
    returns = np.zeros(calls.num_rows, bool)
    returns[own] = schedule.call_kinds[own] == CallKind.PAGEABLE_MEMCPY
    change = ScheduleChange(duration=shorter, without_wait=returns, instant=returns)
    saved_ns = schedule.saved_alone(change) - _pinning_ns(recording, schedule, copies)
    change = replace(change, at_most_ns=max(saved_ns, 0))
    copied, called_ns = int(sizes.sum()), int(durations(calls)[own].sum())
    return Finding(
        rule="R17",
        title=(
            f"{format_count(len(work))} copies of pageable memory take "
            f"{format_duration(gpu_ns)} on the GPU and "
            f"{format_duration(called_ns)} of the host; pinned memory is faster."
        ),
        reason=(
            f"{format_bytes(copied)} at {_gigabytes(copied * 1e9 / max(gpu_ns, 1))}. CUDA copies "
            "pageable memory through a buffer of its own while the host waits. "
            f"{_reference(copies)}{_kept_apart(schedule, device)}"
        ),
        change=_change(recording, schedule, copies),
        certainty="likely" if all(copies.measured) else "possible",
        device=device,
        saved_ns=max(saved_ns, 0),
        schedule=change,
        lines=longest_lines(
            recording, stacks_of(recording.tables, schedule.call[work]), schedule.duration[work]
        ),
        evidence=schedule.evidence(work),
    )


def _change(recording: RecordingData, schedule: Schedule, copies: _Copies) -> str:
    if not is_of(recording, "torch"):
        return _OF_NUMBA if is_of(recording, "numba") else _OF_CUPY
    stacks = stacks_of(recording.tables, schedule.call[copies.work])
    of_modules = have_frame(recording, stacks, lambda frame: makes_modules([frame]))
    if 2 * copies.sizes[of_modules].sum() > copies.sizes.sum():
        return MODULES_ON_THE_GPU
    rows = schedule.rows[copies.work]
    is_read = codes(recording.tables["activities"]["copy_kind"], _COPY_KINDS)[rows] == _TO_HOST
    is_mostly_read = 2 * copies.sizes[is_read].sum() > copies.sizes.sum()
    return _TO_HOST_OF_TORCH if is_mostly_read else _OF_TORCH


def _kept_apart(schedule: Schedule, device: int) -> str:
    for streams in apart_streams(schedule):
        if streams.by_copies and streams.device.device == device:
            return f" {streams.names} never work at the same time for this reason."
    return ""


def _reference(copies: _Copies) -> str:
    measured = copies.measured
    if not all(measured):
        reached = f"Pinned memory reaches about {_gigabytes(copies.typical)} over PCIe"
        which = "4, and more over PCIe 5"
        if copies.typical == _RATE_OF_PCIE_5:
            which = "5, which GPUs with this memory bandwidth have, and half of that over PCIe 4"
        return f"{reached} {which}; this recording has no copies of pinned memory to compare with."
    values = " and ".join(sorted({_gigabytes(rate) for rate in measured if rate}))
    return f"Copies of pinned memory in this recording reach {values}."


def _gigabytes(rate: float) -> str:
    return f"{rate / 1e9:.1f} GB/s"
