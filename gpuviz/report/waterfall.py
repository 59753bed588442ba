"""The peak of a device's memory as a waterfall, level by level."""

from typing import TYPE_CHECKING, Any

from gpuviz.present.markup import BAR_HEADING, Cell, bar, html, table
from gpuviz.quantities import format_bytes

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
    names = ("Level", "Bytes", "Added", "By", BAR_HEADING)
    shown = table("Peak of memory", names, (_row(row, largest) for row in rows))
    return html('<h3>Peak of memory</h3>\n<div class="gpuviz-waterfall">{}</div>', shown)


def _row(row: dict[str, Any], largest: int) -> "tuple[str | Cell, ...]":
    name = Cell(row["level"], row["meaning"])
    if row["bytes"] is None:
        return (name, Cell("unknown", css_class="gpuviz-table__small"), "", "", "")
    added = f"+{format_bytes(row['added'])}" if row["added"] else ""
    responsible = row["responsible"]
    by = _OF[responsible] if row["added"] else ""
    before = row["bytes"] - row["added"]
    drawn = "" if responsible == "others" else bar(before, row["added"], largest, responsible)
    return (name, format_bytes(row["bytes"]), added, by, drawn)
