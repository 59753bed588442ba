"""The peak of a device's memory as a waterfall, level by level."""

from html import escape
from typing import TYPE_CHECKING, Any

from gpuviz.quantities import format_bytes
from gpuviz.report.markup import BAR_HEADING, bar, table

if TYPE_CHECKING:
    import pyarrow as pa

_OF = {"program": "the program", "allocator": "the allocator", "others": "others"}


def waterfall(chain: "pa.Table") -> str:
    """Return the table of `gpuviz.Recording.peak_chain` as HTML, a bar for each level.

    It is empty if no memory was recorded.
    """
    rows = chain.to_pylist()
    # What others hold would leave no room for the rest.
    drawn = [row["bytes"] or 0 for row in rows if row["responsible"] != "others"]
    largest = max(drawn)
    if not largest:
        return ""
    body = "\n".join(_row(row, largest) for row in rows)
    names = ("Level", "Bytes", "Added", "By", BAR_HEADING)
    head = "".join(f"<th>{name}</th>" for name in names)
    shown = table("Peak of memory", head, body)
    return f'<h3>Peak of memory</h3>\n<div class="gpuviz-waterfall">{shown}</div>'


def _row(row: dict[str, Any], largest: int) -> str:
    title = escape(row["meaning"])
    name = f'<td title="{title}">{escape(row["level"])}</td>'
    if row["bytes"] is None:
        return f'<tr>{name}<td colspan="4" class="gpuviz-table__small">unknown</td></tr>'
    added = f"+{format_bytes(row['added'])}" if row["added"] else ""
    responsible = row["responsible"]
    by = _OF[responsible] if row["added"] else ""
    before = row["bytes"] - row["added"]
    drawn = "" if responsible == "others" else bar(before, row["added"], largest, responsible)
    return (
        f"<tr>{name}<td>{format_bytes(row['bytes'])}</td><td>{added}</td><td>{by}</td>"
        f"<td>{drawn}</td></tr>"
    )
