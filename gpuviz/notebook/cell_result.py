"""Result of one cell: GPU memory and streams."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gpuviz.analysis.device_summary import DeviceSummary, summarize
from gpuviz.analysis.initial_state import ALLOCATED, initial_state
from gpuviz.analysis.overlap import DeviceOverlap
from gpuviz.analysis.state import state_at
from gpuviz.analysis.steady_state import SteadyState, steady_state
from gpuviz.data.call_stacks import NO_STACK, Frame
from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import ACTIONS
from gpuviz.notebook.facts import Fact
from gpuviz.ownership.array_names import ArrayNames

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_DRIVER_CALLS = ("segment_alloc", "segment_free", "segment_map", "segment_unmap")
_NONE = ("", "")
_UNKNOWN = (NO_STACK, "")


@dataclass(frozen=True, slots=True)
class Held:
    """Memory that a line allocated and that is still allocated.

    Attributes:
        site: The call site, ``function (file:line)``.
        source: The line's text; empty if unknown.
        bytes: Total size of the blocks, rounded.
        count: Number of blocks.
        names: Variables of the notebook that hold some of it; None if they are unknown.
    """

    site: str
    source: str
    bytes: int
    count: int
    names: tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Wait:
    """A line at which the host was blocked; the time is in ns."""

    site: str
    source: str
    kind: str
    count: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class DeviceResult:
    """The result of a cell on one device, in bytes and counts.

    Attributes:
        summary: The headline numbers of the cell's time.
        allocated_before: Bytes allocated when the cell started.
        peak_site: Call site whose allocation reached the peak; empty if the cell did not raise it.
        peak_source: Text of this line.
        driver_calls: Segments allocated, freed, mapped and unmapped, by action.
        held: Memory that the cell allocated and did not free, by line, largest first.
        overlap: GPU activity during the cell; None if there was none.
        steady: The part of the cell in which the program did not prepare; None with the overlap.
    """

    summary: DeviceSummary
    allocated_before: int
    peak_site: str
    peak_source: str
    driver_calls: Mapping[str, int]
    held: tuple[Held, ...]
    overlap: DeviceOverlap | None
    steady: SteadyState | None


@dataclass(frozen=True, slots=True)
class CellResult:
    """The result of one cell, with the recording of its time.

    Attributes:
        recording: The recording of the cell's time.
        start: Start of the cell, in ns of the recording.
        end: End of the cell.
        streams: Whether GPU activities were recorded.
        devices: Results by device, in ascending order.
        waits: The lines at which the host was blocked, longest first.
        notes: Notes of the recording.
        subject: ``cell`` or ``recording``.
        asked: Facts about what the cell was asked to look for.
    """

    recording: "Recording"
    start: int
    end: int
    streams: bool
    devices: tuple[DeviceResult, ...]
    waits: tuple[Wait, ...]
    notes: tuple[str, ...]
    subject: str = "cell"
    asked: tuple[Fact, ...] = ()


def cell_result(
    recording: "Recording",
    window: tuple[int, int],
    *,
    streams: bool,
    names: ArrayNames | None,
    subject: str = "cell",
) -> CellResult:
    """Return the result of a cell, from the recording of its time.

    Args:
        recording: A recording of the cell's time, as `Recording.window` returns it.
        window: Start and end of the cell, in ns.
        streams: Whether GPU activities were recorded.
        names: The notebook's variables that hold memory; None if another process recorded.
        subject: ``cell`` or ``recording``.
    """
    start, end = window
    return CellResult(
        recording=recording,
        start=start,
        end=end,
        streams=streams,
        devices=tuple(
            # A recording is busy for the same share everywhere: from its first activity.
            _device_result(recording, device, window if subject == "cell" else None, names)
            for device in recording.devices
        ),
        waits=_waits(recording),
        notes=recording.notes,
        subject=subject,
    )


def _device_result(
    recording: "Recording",
    device: int,
    window: tuple[int, int] | None,
    names: ArrayNames | None,
) -> DeviceResult:
    summary = summarize(recording, device)
    events = _cell_events(recording, device)
    peak = _peak_stack(events, summary)
    site, source = _call_site(recording, peak)
    lanes = recording.overlap(device, *(window or ())).devices
    lane = next((each for each in lanes if each.count), None)
    before = initial_state(recording)
    known = device in before.devices()
    current = "allocated_bytes.all.current"
    return DeviceResult(
        summary=summary,
        allocated_before=before.statistics(device)[current] if known else 0,
        peak_site=site,
        peak_source=source,
        driver_calls={
            action: int((events["action"] == ACTIONS.index(action)).sum())
            for action in _DRIVER_CALLS
        },
        held=_held(recording, device, events, names),
        overlap=lane,
        steady=None if lane is None else steady_state(recording, device),
    )


def _cell_events(recording: "Recording", device: int) -> dict[str, np.ndarray]:
    """Return columns of the events of a device, without initial events."""
    table = recording.tables["memory_events"].slice(recording.manifest.initial_events)
    table = table.filter(plain(table["device"]) == device)
    names = ("time", "address", "size", "stack")
    return {name: plain(table[name]) for name in names} | {
        "action": codes(table["action"], ACTIONS),
    }


def _peak_stack(events: dict[str, np.ndarray], summary: DeviceSummary) -> int | None:
    allocations = events["action"] == ACTIONS.index("alloc")
    stacks = events["stack"][allocations & (events["time"] == summary.allocated_peak_ns)]
    return int(stacks[-1]) if len(stacks) else None


def _call_site(recording: "Recording", stack: int | None) -> tuple[str, str]:
    if stack is None:
        return _NONE
    frame: Frame | None = recording.call_stacks.user_frame(stack)
    return (frame.site, frame.source.strip()) if frame else _UNKNOWN


def _held(
    recording: "Recording",
    device: int,
    events: dict[str, np.ndarray],
    names: ArrayNames | None,
) -> tuple[Held, ...]:
    blocks = _new_blocks(recording, device, events)
    by_site: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for address, size, stack in blocks:
        by_site.setdefault(_call_site(recording, stack), []).append((address, size))
    found = [
        Held(
            site=site,
            source=source,
            bytes=sum(size for _, size in of),
            count=len(of),
            names=None
            if names is None
            else tuple(name for block in of for name in names.of(*block)),
        )
        for (site, source), of in by_site.items()
    ]
    return tuple(sorted(found, key=lambda each: -each.bytes))


def _new_blocks(
    recording: "Recording",
    device: int,
    events: dict[str, np.ndarray],
) -> list[tuple[int, int, int]]:
    """Return address, size and stack of the blocks allocated since the start of the cell."""
    freed = events["address"][events["action"] == ACTIONS.index("free_requested")]
    before = initial_state(recording).blocks()
    there = before["address"][(before["state"] == ALLOCATED) & (before["device"] == device)]
    stayed = np.setdiff1d(there, freed)
    now = state_at(recording).blocks()
    chosen = (now["state"] == ALLOCATED) & (now["device"] == device)
    chosen &= ~np.isin(now["address"], stayed)
    columns = (now[name][chosen].tolist() for name in ("address", "size", "stack"))
    return list(zip(*columns, strict=True))


def _waits(recording: "Recording") -> tuple[Wait, ...]:
    rows = recording.synchronizations("line").to_pylist()
    names = ("site", "source", "kind", "count", "total_ns")
    return tuple(Wait(**{name: row[name] for name in names}) for row in rows)
