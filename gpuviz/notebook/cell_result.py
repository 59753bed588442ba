"""Result of one cell: GPU memory and streams."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuviz.analysis.columns import codes, plain
from gpuviz.analysis.state import ALLOCATED, initial_state, state_at
from gpuviz.recording.tables import ACTIONS
from gpuviz.report.summary import DeviceSummary, summarize

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gpuviz.analysis.callstacks import Frame
    from gpuviz.analysis.overlap import DeviceOverlap
    from gpuviz.notebook.holders import Holders
    from gpuviz.recording.recording import Recording

_DRIVER_CALLS = ("segment_alloc", "segment_free", "segment_map", "segment_unmap")
_UNKNOWN = ("", "")


@dataclass(frozen=True, slots=True)
class Held:
    """Memory that a line allocated and that is still allocated.

    Attributes:
        site: ``function (file:line)``.
        source: The line's text; empty where unknown.
        bytes: Of the blocks, as rounded.
        count: Of the blocks.
        names: Names of the notebook that hold some of it.
    """

    site: str
    source: str
    bytes: int
    count: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Wait:
    """A line at which the host waited for the GPU, in ns."""

    site: str
    source: str
    kind: str
    count: int
    total_ns: int


@dataclass(frozen=True, slots=True)
class DeviceResult:
    """What a cell did on one device, in bytes and counts.

    Attributes:
        summary: The headline numbers of the cell's window.
        allocated_before: Allocated when the cell began.
        peak_site: The line whose allocation reached the peak; empty if none of the cell's did.
        peak_source: Its text.
        driver_calls: Segments allocated, freed, mapped and unmapped, by action.
        held: What the cell allocated and left, by line, the most bytes first.
        overlap: What ran in the window; None if nothing did.
    """

    summary: DeviceSummary
    allocated_before: int
    peak_site: str
    peak_source: str
    driver_calls: Mapping[str, int]
    held: tuple[Held, ...]
    overlap: "DeviceOverlap | None"


@dataclass(frozen=True, slots=True)
class CellResult:
    """What one cell did, and the recording of its window.

    Attributes:
        recording: The window's recording.
        start: When the cell began, in ns of the recording.
        end: When it ended.
        streams: Whether activities of the GPU were recorded.
        devices: The devices seen, ascending.
        waits: The lines at which the host waited, the longest first.
        notes: Sentences that a reader of any number should know.
        subject: What it is of: a ``cell`` or a ``recording``.
    """

    recording: "Recording"
    start: int
    end: int
    streams: bool
    devices: tuple[DeviceResult, ...]
    waits: tuple[Wait, ...]
    notes: tuple[str, ...]
    subject: str = "cell"


def cell_result(
    recording: "Recording",
    window: tuple[int, int],
    *,
    streams: bool,
    holders: "Holders",
    subject: str = "cell",
) -> CellResult:
    """Return what a cell did, from the recording of its window.

    Args:
        recording: Begins with what lived when the cell began; `Recording.window` makes one.
        window: When the cell began and ended, in ns.
        streams: Whether activities of the GPU were recorded.
        holders: The notebook's names that hold memory.
        subject: What to call it: a cell or a recording.
    """
    start, end = window
    return CellResult(
        recording=recording,
        start=start,
        end=end,
        streams=streams,
        devices=tuple(
            _device_result(recording, device, start, end, holders) for device in recording.devices
        ),
        waits=_waits(recording),
        notes=recording.notes,
        subject=subject,
    )


def _device_result(
    recording: "Recording",
    device: int,
    start: int,
    end: int,
    holders: "Holders",
) -> DeviceResult:
    summary = summarize(recording, device)
    events = _cell_events(recording, device)
    peak = _peak_stack(events, summary)
    site, source = _place(recording, peak)
    lanes = recording.overlap(device, start, end).devices
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
        held=_held(recording, device, events, holders),
        overlap=next((lane for lane in lanes if lane.count), None),
    )


def _cell_events(recording: "Recording", device: int) -> "dict[str, NDArray[Any]]":
    """Return columns of the events of a device, without those that tell what existed before."""
    table = recording.tables["memory_events"].slice(recording.manifest.initial_events)
    table = table.filter(plain(table["device"]) == device)
    names = ("time", "address", "size", "stack")
    return {name: plain(table[name]) for name in names} | {
        "action": codes(table["action"], ACTIONS),
    }


def _peak_stack(events: "dict[str, NDArray[Any]]", summary: DeviceSummary) -> int | None:
    allocations = events["action"] == ACTIONS.index("alloc")
    stacks = events["stack"][allocations & (events["time"] == summary.allocated_peak_ns)]
    return int(stacks[-1]) if len(stacks) else None


def _place(recording: "Recording", stack: int | None) -> tuple[str, str]:
    if stack is None:
        return _UNKNOWN
    frame: Frame | None = recording.call_stacks.user_frame(stack)
    return (frame.site, frame.source.strip()) if frame else _UNKNOWN


def _held(
    recording: "Recording",
    device: int,
    events: "dict[str, NDArray[Any]]",
    holders: "Holders",
) -> tuple[Held, ...]:
    blocks = _new_blocks(recording, device, events)
    by_site: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for address, size, stack in blocks:
        by_site.setdefault(_place(recording, stack), []).append((address, size))
    found = [
        Held(
            site=site,
            source=source,
            bytes=sum(size for _, size in of),
            count=len(of),
            names=tuple(name for address, size in of for name in holders.of(address, size)),
        )
        for (site, source), of in by_site.items()
    ]
    return tuple(sorted(found, key=lambda each: -each.bytes))


def _new_blocks(
    recording: "Recording",
    device: int,
    events: "dict[str, NDArray[Any]]",
) -> list[tuple[int, int, int]]:
    """Return address, size and stack of the blocks that are allocated now and were not before."""
    import numpy as np

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
