"""How gpuviz's values look in a notebook: HTML beside their text."""

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpuviz.data.marks import TABLE_MARK
from gpuviz.notebook.cell_markup import as_html
from gpuviz.notebook.cell_result import cell_result
from gpuviz.present.markup import columns, html, inline_table
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration

if TYPE_CHECKING:
    from gpuviz.recording import Recording

MOST_ROWS = 12
# Memory events and activities; the summary of more takes longer than a user waits for a value.
_MOST_ROWS_SUMMARIZED = 1_000_000
_LONGEST_TEXT = 90
_TABLE = ("pyarrow.lib", "Table")
# Columns of bytes besides those whose names end with ``_bytes``.
_SIZES = ("bytes", "added", "largest", "peak_allocated", "peak_reserved", "peak_reserved_lower")


def recording_html(recording: "Recording") -> str:
    """Return the headline, facts and small picture of a recording."""
    rows = sum(len(recording.tables[name]) for name in ("memory_events", "activities"))
    if rows > _MOST_ROWS_SUMMARIZED:
        return html("<code>{}</code>", repr(recording))
    start, end = recording.time_range
    streams = bool(len(recording.tables["activities"]))
    return as_html(
        cell_result(recording, (start, end), streams=streams, names=None, subject="recording")
    )


def register(shell: Any) -> None:
    """Show the tables of a recording with their units in an IPython shell."""
    shell.display_formatter.formatters["text/html"].for_type_by_name(*_TABLE, _marked_table_html)


def unregister(shell: Any) -> None:
    """Undo `register`."""
    shell.display_formatter.formatters["text/html"].pop(".".join(_TABLE), None)


def _marked_table_html(table: "pa.Table") -> str | None:
    """Return None for a table of another library, which IPython then shows as before."""
    return table_html(table) if TABLE_MARK in (table.schema.metadata or {}) else None


def table_html(table: "pa.Table") -> str:
    """Return the first rows of a table of a recording, with bytes and times as text."""
    names = table.column_names
    rows = (
        [_value(name, row[name]) for name in names] for row in table.slice(0, MOST_ROWS).to_pylist()
    )
    numbers = "".join("n" if _is_number(field.type) else "t" for field in table.schema)
    count = format_counted(table.num_rows, "row")
    shown = f"the first {MOST_ROWS} of {count}" if table.num_rows > MOST_ROWS else count
    of_rows = inline_table(list(map(_heading, names)), rows, columns(numbers))
    return html("{}<div>{}</div>", of_rows, shown)


def _is_number(kind: "pa.DataType") -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _heading(name: str) -> str:
    """Return a column's name without the unit that its values have."""
    return name.removesuffix("_ns").replace("_", " ")


def _value(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return _cut(", ".join(map(str, value)))
    if isinstance(value, float):
        return f"{format_bytes(int(value))}/s" if name == "bytes_per_second" else f"{value:.3g}"
    if name == "stack" or not isinstance(value, int):
        return _cut(str(value))
    if name.endswith("_ns"):
        return format_duration(value)
    return format_bytes(value) if _is_size(name) else format_count(value)


def _is_size(name: str) -> bool:
    return name in _SIZES or name.endswith("_bytes")


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
