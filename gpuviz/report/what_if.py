"""The section of a page about other settings of the allocator."""

from typing import TYPE_CHECKING, Any

from gpuviz._core import DeviceError
from gpuviz.analysis.allocator_settings import ASYNC, line_to_use
from gpuviz.analysis.recommendation import name_of, recommendation
from gpuviz.analysis.what_if import RECORDED
from gpuviz.conclusions.store import affordable_what_if
from gpuviz.errors import RecordingError
from gpuviz.present.markup import BAR_HEADING, Cell, bar, html, joined, panel, table, with_code
from gpuviz.quantities import format_bytes, format_count, format_duration, format_share

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuviz.recording import Recording

_HEADINGS = (
    "Settings",
    "Reserved",
    "Change",
    BAR_HEADING,
    "Allocated",
    "Unused",
    "Failed",
    "Retries",
    "Driver calls",
)
_UNKNOWN = "\N{EN DASH}"
_EXPLANATION = (
    "The recorded allocations and frees, repeated under other settings of the allocator. Reserved "
    "and allocated bytes are those at their peaks. A click selects the line that a program needs."
)
_LONG = (
    "Not computed, because the recording has many memory events. `gpuviz what-if FILE` "
    "computes it. A report that is written after `recording.what_if()` contains it."
)


def what_if_section(recording: "Recording", device: int) -> str:
    """Return the section about a device's memory under other settings; empty without memory."""
    if not recording.peak(device).bytes:
        return ""
    return panel("What-if", _body(recording, device), slug="what-if")


def _body(recording: "Recording", device: int) -> str:
    try:
        found = affordable_what_if(recording, device)
    except (RecordingError, DeviceError) as error:
        return _paragraph(f"The recorded allocations cannot be repeated: {error}")
    if found is None:
        return _paragraph(_LONG)
    rows = found.to_pylist()
    largest = max(row["peak_reserved"] or row["peak_allocated"] for row in rows)
    cells = (_row(recording, row, rows[0], largest) for row in rows)
    shown = table("Memory under other settings", _HEADINGS, cells)
    best = recommendation(recording, rows)
    advice = _paragraph(f"{best.effect}: `{best.line}`") if best is not None else ""
    return joined([advice, shown, _paragraph(_EXPLANATION), _paragraph(_command(rows))])


def _command(rows: list[dict[str, Any]]) -> str:
    replayed = [row for row in rows[1:] if row["settings"] != ASYNC]
    best = min(replayed, key=lambda row: (row["num_ooms"], row["peak_reserved"]))["settings"]
    command = f'gpuviz what-if FILE "{best}" -o other.gpuviz'
    return f"To write a row as a recording of its own, which you can open: `{command}`"


def _paragraph(text: str) -> str:
    return html('<p class="gpuviz-findings__none">{}</p>', with_code(text))


def _row(
    recording: "Recording", row: dict[str, Any], recorded: dict[str, Any], largest: int
) -> "tuple[str | Cell, ...]":
    settings = row["settings"]
    is_recorded = settings == RECORDED
    line = "" if is_recorded else line_to_use(recording, settings)
    code = html('<div><code class="gpuviz-code gpuviz-copied">{}</code></div>', line)
    name = "as recorded" if is_recorded else html("{}{}", name_of(settings), code)
    return (
        Cell(name, css_class="gpuviz-table__name"),
        _reserved(row),
        "" if is_recorded else _change(row, recorded),
        _bar(row, largest),
        format_bytes(row["peak_allocated"]),
        _known(row["fragmentation"], format_share),
        _failed(row),
        _known(row["num_alloc_retries"], format_count),
        _calls(row),
    )


def _reserved(row: dict[str, Any]) -> str:
    lower, upper = row["peak_reserved_lower"], row["peak_reserved"]
    shown = _known(upper, format_bytes)
    return shown if lower == upper else f"{format_bytes(lower)} to {shown}"


def _change(row: dict[str, Any], recorded: dict[str, Any]) -> str:
    before, after = recorded["peak_reserved"], row["peak_reserved"]
    if not before or after is None or row["peak_reserved_lower"] != after:
        return _UNKNOWN
    if after == before:
        return "none"
    sign = "+" if after > before else "\N{MINUS SIGN}"
    changed = abs(after - before)
    return f"{sign}{format_bytes(changed)} ({format_share(changed / before)})"


def _failed(row: dict[str, Any]) -> str:
    failed, first_ns = _known(row["num_ooms"], format_count), row["first_failure_ns"]
    return failed if first_ns is None else f"{failed}, first at {format_duration(first_ns)}"


def _calls(row: dict[str, Any]) -> str:
    calls = _known(row["driver_calls"], format_count)
    if row["driver_ns"] is None:
        return calls
    return f"{calls} ({format_duration(row['driver_ns'])})"


def _known(value: Any, form: "Callable[[Any], str]") -> str:
    return _UNKNOWN if value is None else form(value)


def _bar(row: dict[str, Any], largest: int) -> str:
    allocated, reserved = row["peak_allocated"], row["peak_reserved"] or 0
    return bar(allocated, max(reserved - allocated, 0), largest, "allocator")
