"""Table of what each line of a program costs."""

from html import escape
from typing import TYPE_CHECKING, Any

from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration
from gpuviz.report.markup import cell_bar, code_and_site, sortable_table

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuviz.recording.recording import Recording

_MOST_ROWS = 200
_COLUMNS: "tuple[tuple[str, str, Callable[[int], str]], ...]" = (
    ("At the peak", "live_bytes", format_bytes),
    ("Allocated", "total_bytes", format_bytes),
    ("Kernel time", "kernel_ns", format_duration),
    ("Launches", "kernel_count", format_count),
    ("Copies", "copy_ns", format_duration),
    ("Host waits", "wait_ns", format_duration),
    ("Idle before", "idle_ns", format_duration),
)


def lines_table(recording: "Recording", device: int) -> str:
    """Return the lines of `gpuviz.Recording.lines` as HTML; empty if there are none."""
    rows = recording.lines(device).to_pylist()
    if not rows:
        return ""
    largest = {name: max(row[name] for row in rows) for _, name, _ in _COLUMNS}
    body = "\n".join(_row(row, largest) for row in rows[:_MOST_ROWS])
    shown = sortable_table("Lines", ["Line", *(title for title, _, _ in _COLUMNS)], body)
    rest = len(rows) - _MOST_ROWS
    more = f"<p>And {format_counted(rest, 'more line')}: <code>recording.lines()</code></p>"
    return shown + (more if rest > 0 else "")


def _row(row: dict[str, Any], largest: dict[str, int]) -> str:
    cells = "".join(
        f'<td data-sort="{row[name]}">{_cell(row[name], largest[name], form)}</td>'
        for _, name, form in _COLUMNS
    )
    line = code_and_site(row["source"], row["site"])
    name = f'<td class="gpuviz-table__name" data-sort="{escape(row["site"])}">{line}</td>'
    return f"<tr>{name}{cells}</tr>"


def _cell(value: int, largest: int, form: "Callable[[int], str]") -> str:
    return f"{cell_bar(value, largest)}{form(value)}" if value else ""
