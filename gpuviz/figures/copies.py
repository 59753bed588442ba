"""Chart of copied bytes and bandwidth by direction."""

from typing import TYPE_CHECKING, Any

from gpuviz.figures.palette import COPIES
from gpuviz.figures.style import bars, bytes_scale
from gpuviz.quantities import format_bytes, format_count, format_duration

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from gpuviz.recording import Recording


def copies_figure(recording: "Recording") -> "go.Figure":
    """Return a chart of copied bytes and bandwidth by direction and host memory."""
    rows = recording.copies().to_pylist()
    scale, unit = bytes_scale(max((row["bytes"] for row in rows), default=0))
    made = bars("Copies by direction", [_direction(row) for row in rows], x_title=unit)
    made.add_bar(
        y=list(range(len(rows))),
        x=[row["bytes"] / scale for row in rows],
        orientation="h",
        name="copies",
        marker={"color": [COPIES[row["copy_kind"] or ""] for row in rows]},
        text=[_bandwidth(row) for row in rows],
        customdata=[
            [
                format_bytes(row["bytes"]),
                format_count(row["count"]),
                format_duration(row["total_ns"]),
            ]
            for row in rows
        ],
        hovertemplate="%{customdata[0]} in %{customdata[1]} copies, %{customdata[2]}<br>%{text}"
        "<extra></extra>",
    )
    return made


def _direction(row: dict[str, Any]) -> str:
    direction = (row["copy_kind"] or "unknown").replace("_", " ")
    return f"{direction}, {row['host_memory']}" if row["host_memory"] else direction


def _bandwidth(row: dict[str, Any]) -> str:
    speed = row["bytes_per_second"]
    return "" if speed is None else f"{format_bytes(round(speed))}/s"
