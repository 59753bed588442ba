"""The growing memory of a recording as HTML for a notebook; all texts are escaped."""

from html import escape
from typing import TYPE_CHECKING

from gpuviz.advice.leaks_text import NOTHING_GROWS, held, pace

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 12
_NUMBER = ' style="text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap"'
_TEXT = ' style="text-align:left"'


def leaks_html(table: "pa.Table") -> str:
    """Return the first rows of what `gpuviz.Recording.leaks` returned."""
    if not table.num_rows:
        return f"<div>{escape(NOTHING_GROWS)}</div>"
    rows = "".join(
        f"<tr><td{_NUMBER}>{escape(pace(row))}</td>"
        f"<td{_TEXT}><code>{escape(row['source'])}</code> {escape(row['site'])}<br>"
        f"{escape(held(row))}</td></tr>"
        for row in table.slice(0, MOST_ROWS).to_pylist()
    )
    more = table.num_rows - MOST_ROWS
    rest = f"<div>and {more} more</div>" if more > 0 else ""
    head = f"<th{_NUMBER}>grows by</th><th{_TEXT}>line</th>"
    return (
        f'<div style="overflow-x:auto"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table>{rest}</div>"
    )
