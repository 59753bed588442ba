"""How gpuviz's values look in a notebook: HTML beside their text."""

import shutil
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gpuviz.data.marks import TABLE_MARK
from gpuviz.formats.column_units import unit_of
from gpuviz.notebook.cell_markup import as_html
from gpuviz.notebook.cell_result import cell_result
from gpuviz.present.markup import columns, html, inline_table
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration
from gpuviz.terminal import printable

if TYPE_CHECKING:
    from gpuviz.recording import Recording

MOST_ROWS = 12
# Memory events and activities; the summary of more takes longer than a user waits for a value.
_MOST_ROWS_SUMMARIZED = 1_000_000
_LONGEST_TEXT = 90
# The types of columns of ids, which are no amounts.
_IDS = ("uint32", "uint64")
_TABLE = ("pyarrow.lib", "Table")
# Columns of bytes besides those whose names end with ``_bytes``.


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
    formatters = shell.display_formatter.formatters
    formatters["text/html"].for_type_by_name(*_TABLE, _marked_table_html)
    formatters["text/plain"].for_type_by_name(*_TABLE, _print_table)


def unregister(shell: Any) -> None:
    """Undo `register`."""
    for kind in ("text/html", "text/plain"):
        shell.display_formatter.formatters[kind].pop(".".join(_TABLE), None)


def _marked_table_html(table: pa.Table) -> str | None:
    """Return None for a table of another library, which IPython then shows as before."""
    return table_html(table) if _is_marked(table) else None


def _print_table(table: pa.Table, printer: Any, _is_cycle: bool) -> None:
    width = shutil.get_terminal_size().columns
    printer.text(table_text(table, width) if _is_marked(table) else repr(table))


def _is_marked(table: pa.Table) -> bool:
    return TABLE_MARK in (table.schema.metadata or {})


def table_text(table: pa.Table, width: int) -> str:
    """Return the first rows of a table of a recording, with the columns that fit into a width.

    Ids come last, because other columns say more.
    """
    rows = table.slice(0, MOST_ROWS).to_pylist()
    columns: list[list[str]] = []
    hidden: list[str] = []
    left = width
    for field in sorted(table.schema, key=_is_id):
        values = (_value(field, row[field.name]) for row in rows)
        texts = [printable(text) for text in (_heading(field.name), *values)]
        widest = max(map(len, texts))
        if columns and widest > left:
            hidden.append(field.name)
            continue
        left -= widest + 2
        pad = str.rjust if _is_number(field.type) else str.ljust
        columns.append([pad(text, widest) for text in texts])
    lines = ["  ".join(texts).rstrip() for texts in zip(*columns, strict=True)]
    more = [f"more columns: {', '.join(hidden)}"] if hidden else []
    return "\n".join([*lines, "; ".join([_extent(table), *more])])


def table_html(table: pa.Table) -> str:
    """Return the first rows of a table of a recording, with bytes and times as text."""
    rows = (
        [_value(field, row[field.name]) for field in table.schema]
        for row in table.slice(0, MOST_ROWS).to_pylist()
    )
    numbers = "".join("n" if _is_number(field.type) else "t" for field in table.schema)
    of_rows = inline_table(list(map(_heading, table.column_names)), rows, columns(numbers))
    return html("{}<div>{}</div>", of_rows, _extent(table))


def _extent(table: pa.Table) -> str:
    count = format_counted(table.num_rows, "row")
    return f"the first {MOST_ROWS} of {count}" if table.num_rows > MOST_ROWS else count


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_id(field: pa.Field) -> bool:
    return field.name == "stack" or (str(field.type) in _IDS and field.name != "address")


def _heading(name: str) -> str:
    """Return a column's name without the unit that its values have."""
    return name.removesuffix("_ns").replace("_", " ")


def _value(field: pa.Field, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        return _cut(", ".join(map(str, value)))
    if isinstance(value, float):
        is_rate = field.name == "bytes_per_second"
        return f"{format_bytes(int(value))}/s" if is_rate else f"{value:.3g}"
    return _integer(field, value) if isinstance(value, int) else _cut(str(value))


def _integer(field: pa.Field, value: int) -> str:
    name = field.name
    if name == "address":
        return f"{value:#x}"
    unit = unit_of(name)
    if unit == b"ns":
        return format_duration(value)
    if _is_id(field):
        return str(value)
    return format_bytes(value) if unit == b"bytes" else format_count(value)


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
