"""Chart of call sites by bytes at the peak and in total."""

from typing import TYPE_CHECKING, Literal

from gpuviz.figures.palette import ALLOCATED
from gpuviz.figures.style import MOST_BARS, bars, bytes_scale, escaped
from gpuviz.quantities import format_bytes, format_count

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from gpuviz.recording import Recording


def sites_figure(
    recording: "Recording",
    by: Literal["peak", "total"] = "peak",
    device: int | None = None,
) -> "go.Figure":
    """Return a chart of the lines with the most bytes.

    Args:
        recording: The recording.
        by: Bytes at the peak, or bytes allocated over the recording.
        device: Ordinal; all devices if None.

    Raises:
        ValueError: ``by`` has another value, or the recording has no such device.
    """
    if by not in ("peak", "total"):
        raise ValueError(f'by must be "peak" or "total", got {by!r}')
    column, count = ("live_bytes", "live_count") if by == "peak" else ("total_bytes", "total_count")
    table = recording.sites("line", at="peak", device=device)
    table = table.sort_by([(column, "descending"), ("site", "ascending")])
    rows = [row for row in table.slice(0, MOST_BARS).to_pylist() if row[column]]
    scale, unit = bytes_scale(max((row[column] for row in rows), default=0))
    titles = {"peak": "Memory at the peak by line", "total": "Memory allocated in total by line"}
    made = bars(titles[by], [row["source"].strip() or row["site"] for row in rows], x_title=unit)
    made.add_bar(
        y=list(range(len(rows))),
        x=[row[column] / scale for row in rows],
        orientation="h",
        name=by,
        marker={"color": ALLOCATED},
        customdata=[
            [escaped(row["site"]), format_bytes(row[column]), format_count(row[count])]
            for row in rows
        ],
        hovertemplate="%{customdata[1]} in %{customdata[2]} blocks<br>%{customdata[0]}"
        "<extra></extra>",
    )
    return made
