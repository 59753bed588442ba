"""R56: copies between GPUs that go through the host, although the GPUs can access each other."""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa

from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import longest_lines
from gpuviz.advice.replay.schedule import Schedule, ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.analysis.device_links import DeviceLink, device_links
from gpuviz.analysis.launches import stacks_of
from gpuviz.analysis.peer_copies import PeerCopies, peer_copies
from gpuviz.data.columns import plain
from gpuviz.quantities import format_bytes, format_counted, format_duration

RULES = (
    Rule(
        "R56",
        "copies between GPUs through the host",
        "the driver says that the two GPUs can access each other's memory, NVLinks join them, and "
        "copies between them were staged in host memory all the same; the saving assumes the rate "
        "of the recording's own direct copies, else what NVLink reaches",
        "`cupy.cuda.runtime.deviceEnablePeerAccess`, the line is in the finding",
    ),
)

# What an NVLink moves in one direction, in bytes per ns, and the share of it that copies of 64 MiB
# reach: 391 of 450 GB/s between two H100.
_NVLINK = {"1.0": 20, "2.0": 25, "2.2": 25, "3.0": 25, "3.1": 25, "4.0": 25, "5.0": 50}
_REACHED = 0.87
_LATENCY_NS = 5_000
# From this size on the time of a direct copy shows the speed of the link.
_LEAST_BYTES = 1 << 20


def find(schedule: Schedule) -> Iterator[Finding]:
    """Find copies between two GPUs that are staged in host memory without need.

    Trigger: the driver says that each of the two GPUs can access the other one's memory, and copies
    between them went through the host. At least 1 % of the recording is saved.

    Saving: the recording's `Schedule`, replayed with copies that take as long as direct ones: at
    the speed of the recording's own direct copies between the two, else at what NVLink reaches. No
    saving is known for GPUs that PCIe alone joins, so that these are left out.
    """
    recording = schedule.recording
    copies = peer_copies(recording.tables)
    for link in device_links(recording):
        pair = (link.first, link.second)
        between = copies.among(_is_between(copies, pair))
        staged = between.among(between.is_staged)
        speed = _speed(recording.tables, between.among(~between.is_staged), link)
        if link.access and len(staged) and speed:
            yield from _finding(schedule, staged, speed, link)


def _is_between(copies: PeerCopies, pair: tuple[int, int]) -> np.ndarray:
    ends = (copies.source, copies.destination)
    found: np.ndarray = np.isin(ends[0], pair) & np.isin(ends[1], pair)
    return found


def _speed(tables: Mapping[str, pa.Table], direct: PeerCopies, link: DeviceLink) -> float | None:
    """Return the bytes per ns of direct copies; None if that is not known."""
    size = plain(tables["activities"]["bytes"])[direct.activity]
    large = (size >= _LEAST_BYTES) & (direct.end > direct.time)
    if large.any():
        return float(np.median(size[large] / (direct.end - direct.time)[large]))
    rate = _NVLINK.get(link.nvlink_version or "", 0)
    return _REACHED * rate * (link.nvlinks or 0) or None


def _finding(
    schedule: Schedule, staged: PeerCopies, speed: float, link: DeviceLink
) -> Iterator[Finding]:
    recording = schedule.recording
    size = plain(recording.tables["activities"]["bytes"])[staged.activity]
    needed = (size / speed + _LATENCY_NS).astype(np.int64)
    shorter = schedule.duration.copy()
    work = schedule.number[staged.activity]
    shorter[work] = np.minimum(shorter[work], needed)
    # The call stages piece by piece; that of a direct copy returns at once.
    instant = np.zeros(len(schedule.called), bool)
    instant[staged.call[staged.call >= 0]] = True
    change = ScheduleChange(duration=shorter, instant=instant)
    saved_ns = schedule.saved_alone(change)
    if saved_ns < schedule.relevant_ns:
        return
    took = staged.end - staged.time
    direct_ns = int(np.minimum(took, needed).sum())
    first, second = link.first, link.second
    yield Finding(
        rule="R56",
        title=(
            f"{format_counted(len(staged), 'copy', 'copies')} between GPU {first} and GPU {second} "
            f"({format_bytes(int(size.sum()))}) go through the host, although the GPUs can access "
            "each other's memory."
        ),
        reason=(
            f"They take {format_duration(int(took.sum()))}. With peer access they would take about "
            f"{format_duration(direct_ns)} ({link.text})."
        ),
        change=(
            "Enable peer access before the first of these copies; it then holds for both "
            f"directions: `with cupy.cuda.Device({first}): "
            f"cupy.cuda.runtime.deviceEnablePeerAccess({second})`."
        ),
        certainty="likely",
        device=int(staged.source[0]),
        saved_ns=saved_ns,
        schedule=change,
        lines=longest_lines(recording, stacks_of(recording.tables, staged.call), took),
        evidence=schedule.evidence(work),
    )
