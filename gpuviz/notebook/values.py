"""How gpuviz's values look in a notebook: HTML beside their text; all texts are escaped."""

from html import escape
from typing import TYPE_CHECKING, Any

from gpuviz.advice.finding_text import NOTHING_FOUND
from gpuviz.advice.text import short_saving
from gpuviz.data.marks import TABLE_MARK
from gpuviz.notebook.cell_markup import as_html
from gpuviz.notebook.cell_result import cell_result
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration
from gpuviz.report.markup import with_code

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from gpuviz.advice.finding import Finding
    from gpuviz.recording import Recording

MOST_FINDINGS = 3
MOST_ROWS = 12
# Memory events and activities; the summary of more takes longer than a user waits for a value.
_MOST_ROWS_SUMMARIZED = 1_000_000
_LONGEST_TEXT = 90
_TABLE = ("pyarrow.lib", "Table")
# Columns of bytes besides those whose names end with ``_bytes``.
_SIZES = ("bytes", "added", "largest", "peak_allocated", "peak_reserved", "peak_reserved_lower")

_FINDINGS_STYLE = """<style>
.gpuviz-found{margin:2px;line-height:1.5;color:var(--jp-ui-font-color1,inherit);
font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px}
.gpuviz-found summary{cursor:pointer}
.gpuviz-found div{margin-left:16px}
.gpuviz-found__saving{display:inline-block;min-width:72px;font-weight:600;
font-variant-numeric:tabular-nums}
</style>"""
# Inline, because JupyterLab removes style elements from untrusted notebooks.
_NUMBER = ' style="text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"'
_TEXT = ' style="text-align:left"'


def recording_html(recording: "Recording") -> str:
    """Return the headline, facts and small picture of a recording."""
    rows = sum(len(recording.tables[name]) for name in ("memory_events", "activities"))
    if rows > _MOST_ROWS_SUMMARIZED:
        return f"<code>{escape(repr(recording))}</code>"
    start, end = recording.time_range
    streams = bool(len(recording.tables["activities"]))
    return as_html(
        cell_result(recording, (start, end), streams=streams, names=None, subject="recording")
    )


def findings_html(
    found: "Sequence[Finding]", heading: str = "", notes: "Sequence[str]" = ()
) -> str:
    """Return findings, a line each that opens to the reason.

    Args:
        found: The findings, most saving first.
        heading: What they are about.
        notes: Sentences on what could not be looked at.
    """
    of = f"<div>{escape(heading)}</div>" if heading else ""
    first = "".join(map(_finding, found[:MOST_FINDINGS])) or f"<div>{escape(NOTHING_FOUND)}</div>"
    rest = "".join(map(_finding, found[MOST_FINDINGS:]))
    if rest:
        more = format_counted(len(found) - MOST_FINDINGS, "more finding")
        rest = f"<details><summary>{more}</summary>{rest}</details>"
    said = "".join(f"<div>{escape(sentence)}</div>" for sentence in notes)
    return f'{_FINDINGS_STYLE}<div class="gpuviz-found">{of}{first}{rest}{said}</div>'


def _finding(finding: "Finding") -> str:
    lines = (f"{line.amount}: {line.site}" for line in finding.lines)
    details = "".join(
        f"<div>{with_code(text)}</div>" for text in (finding.reason, finding.change, *lines)
    )
    return (
        f'<details><summary><span class="gpuviz-found__saving">{short_saving(finding)}</span>'
        f"{with_code(finding.title)}</summary>{details}</details>"
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
    head = "".join(
        f"<th{_style(table.schema.field(name).type)}>{escape(_heading(name))}</th>"
        for name in names
    )
    rows = "".join(
        "<tr>"
        + "".join(
            f"<td{_style(table.schema.field(name).type)}>{escape(_value(name, row[name]))}</td>"
            for name in names
        )
        + "</tr>"
        for row in table.slice(0, MOST_ROWS).to_pylist()
    )
    count = format_counted(table.num_rows, "row")
    shown = f"the first {MOST_ROWS} of {count}" if table.num_rows > MOST_ROWS else count
    return (
        f'<div style="overflow-x:auto"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table><div>{shown}</div></div>"
    )


def _style(kind: "pa.DataType") -> str:
    import pyarrow as pa

    return _NUMBER if pa.types.is_integer(kind) or pa.types.is_floating(kind) else _TEXT


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
