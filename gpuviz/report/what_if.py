"""The section of a page about other settings of the allocator."""

from typing import TYPE_CHECKING, Any

from gpuviz._core import DeviceError
from gpuviz.analysis.allocator_settings import ASYNC, line_to_use
from gpuviz.analysis.recommendation import name_of, recommendation
from gpuviz.analysis.torch_alone import by_torch_alone
from gpuviz.analysis.what_if import RECORDED
from gpuviz.conclusions.store import affordable_what_if
from gpuviz.errors import RecordingError
from gpuviz.present.section import (
    Bar,
    Cell,
    Part,
    Row,
    Section,
    hint,
    of_bytes,
    of_count,
    of_share,
    table,
    text,
)
from gpuviz.quantities import format_bytes, format_count, format_duration, format_share

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_HEADINGS = (
    "Settings",
    "Reserved",
    "Change",
    "Allocated",
    "Unused",
    "Failed",
    "Retries",
    "Driver calls",
)
_UNKNOWN = Cell("\N{EN DASH}")
_EXPLANATION = (
    "The recorded allocations and frees, repeated under other settings of the allocator. Reserved "
    "and allocated bytes are those at their peaks. A click selects the line that a program needs."
)
_LONG = (
    "Not computed, because the recording has many memory events. `gpuviz what-if FILE` "
    "computes it. A report that is written after `recording.what_if()` contains it."
)


def what_if_section(recording: "Recording", device: int) -> Section | None:
    """Return the section about a device's memory under other settings; None without memory."""
    if not recording.peak(device).bytes:
        return None
    return Section("what-if", "What-if", tuple(_parts(recording, device)))


def _parts(recording: "Recording", device: int) -> list[Part]:
    try:
        found = affordable_what_if(recording, device)
    except (RecordingError, DeviceError) as error:
        return [text(f"The recorded allocations cannot be repeated: {error}")]
    if found is None:
        return [text(_LONG)]
    rows = found.to_pylist()
    largest = max(row["peak_reserved"] or row["peak_allocated"] for row in rows)
    cells = (_row(recording, row, rows[0], largest) for row in rows)
    best = recommendation(recording, rows)
    return [
        *([text(f"{best.effect}: `{best.line}`")] if best is not None else []),
        table("Memory under other settings", _HEADINGS, cells),
        hint(_EXPLANATION),
        text(_command(rows)),
    ]


def _command(rows: list[dict[str, Any]]) -> str:
    replayed = [row for row in rows[1:] if row["settings"] != ASYNC]
    best = min(replayed, key=lambda row: (row["num_ooms"], row["peak_reserved"]))["settings"]
    command = f'gpuviz what-if FILE "{best}" -o other.gpuviz'
    return f"To write a row as a recording of its own, which you can open: `{command}`"


def _row(
    recording: "Recording", row: dict[str, Any], recorded: dict[str, Any], largest: int
) -> Row:
    settings = row["settings"]
    is_recorded = settings == RECORDED
    line = "" if is_recorded else line_to_use(by_torch_alone(recording).manifest, settings)
    allocated, reserved = row["peak_allocated"], row["peak_reserved"] or 0
    unused = max(reserved - allocated, 0)
    cells = (
        Cell("as recorded" if is_recorded else f"{name_of(settings)} `{line}`"),
        _reserved(row),
        Cell() if is_recorded else _change(row, recorded),
        of_bytes(allocated),
        _UNKNOWN if row["fragmentation"] is None else of_share(row["fragmentation"]),
        _failed(row),
        _count(row["num_alloc_retries"]),
        _calls(row),
    )
    return Row(cells, bar=Bar(allocated / largest, unused / largest, "allocator"))


def _reserved(row: dict[str, Any]) -> Cell:
    lower, upper = row["peak_reserved_lower"], row["peak_reserved"]
    shown = _UNKNOWN if upper is None else of_bytes(upper)
    return shown if lower == upper else Cell(f"{format_bytes(lower)} to {shown.text}", lower)


def _change(row: dict[str, Any], recorded: dict[str, Any]) -> Cell:
    before, after = recorded["peak_reserved"], row["peak_reserved"]
    if not before or after is None or row["peak_reserved_lower"] != after:
        return _UNKNOWN
    change = after - before
    if not change:
        return Cell("none", 0)
    sign = "+" if change > 0 else "\N{MINUS SIGN}"
    size, share = format_bytes(abs(change)), format_share(abs(change) / before)
    return Cell(f"{sign}{size} ({share})", change)


def _failed(row: dict[str, Any]) -> Cell:
    failed, first_ns = _count(row["num_ooms"]), row["first_failure_ns"]
    if first_ns is None:
        return failed
    return Cell(f"{failed.text}, first at {format_duration(first_ns)}", failed.value)


def _calls(row: dict[str, Any]) -> Cell:
    calls, spent_ns = row["driver_calls"], row["driver_ns"]
    if calls is None or spent_ns is None:
        return _count(calls)
    return Cell(f"{format_count(calls)} ({format_duration(spent_ns)})", calls)


def _count(count: int | None) -> Cell:
    return _UNKNOWN if count is None else of_count(count)
