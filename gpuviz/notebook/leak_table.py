"""The growing memory of a recording as HTML for a notebook."""

from typing import TYPE_CHECKING

from gpuviz.advice.leaks_text import NOTHING_GROWS, held, pace
from gpuviz.present.markup import columns, html, inline_table

if TYPE_CHECKING:
    import pyarrow as pa

MOST_ROWS = 12


def leaks_html(table: "pa.Table") -> str:
    """Return the first rows of what `gpuviz.Recording.leaks` returned."""
    if not table.num_rows:
        return html("<div>{}</div>", NOTHING_GROWS)
    rows = (
        (pace(row), html("<code>{}</code> {}<br>{}", row["source"], row["site"], held(row)))
        for row in table.slice(0, MOST_ROWS).to_pylist()
    )
    more = table.num_rows - MOST_ROWS
    rest = html("<div>and {} more</div>", more) if more > 0 else ""
    return inline_table(("grows by", "line"), rows, columns("nt")) + rest
