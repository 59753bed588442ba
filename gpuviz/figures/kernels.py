"""Chart of kernels by GPU time."""

from typing import TYPE_CHECKING

from gpuviz.figures.palette import KERNEL
from gpuviz.figures.style import MOST_BARS, bars, escaped, seconds_scale
from gpuviz.quantities import format_count, format_duration, format_share

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from gpuviz.recording import Recording

_LONGEST_NAME = 300


def kernels_figure(recording: "Recording") -> "go.Figure":
    """Return a chart of the kernels with the most time."""
    rows = recording.kernels().slice(0, MOST_BARS).to_pylist()
    scale, unit = seconds_scale(max((row["total_ns"] for row in rows), default=0))
    made = bars("Time by kernel", [row["name"] for row in rows], x_title=f"total ({unit})")
    made.add_bar(
        y=list(range(len(rows))),
        x=[row["total_ns"] / scale for row in rows],
        orientation="h",
        name="kernels",
        marker={"color": KERNEL},
        customdata=[
            [
                escaped(row["name"][:_LONGEST_NAME]),
                format_duration(row["total_ns"]),
                format_share(row["share"]),
                format_count(row["count"]),
                format_duration(int(row["median_ns"])),
                escaped(row["site"]),
            ]
            for row in rows
        ],
        hovertemplate="%{customdata[0]}<br>%{customdata[1]}, %{customdata[2]} of the time of all "
        "kernels<br>%{customdata[3]} launches, median %{customdata[4]}<br>%{customdata[5]}"
        "<extra></extra>",
    )
    return made
