"""Chart of how the peak of memory comes about."""

from typing import TYPE_CHECKING

from gpuviz.figures.palette import ALLOCATED, RESERVED
from gpuviz.figures.style import bars, bytes_scale
from gpuviz.quantities import format_bytes

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from gpuviz.recording import Recording

_COLOURS = {"program": ALLOCATED, "allocator": RESERVED}


def peak_chain_figure(recording: "Recording", device: int | None = None) -> "go.Figure":
    """Return a waterfall of the levels of `gpuviz.Recording.peak_chain` that are known.

    What others hold on the device is left out.

    Raises:
        ValueError: The recording has no such device.
    """
    device = recording.device_or_first(device)
    rows = recording.peak_chain(device, seconds=0).to_pylist() if recording.devices else []
    rows = [row for row in rows if row["bytes"] is not None and row["responsible"] != "others"]
    scale, unit = bytes_scale(max((row["bytes"] for row in rows), default=0))
    made = bars(f"Peak of memory, device {device}", [row["level"] for row in rows], x_title=unit)
    made.add_bar(
        orientation="h",
        y=list(range(len(rows))),
        x=[(row["bytes"] - row["added"]) / scale for row in rows],
        marker_color=RESERVED,
        opacity=0.3,
        hoverinfo="skip",
        showlegend=False,
    )
    made.add_bar(
        orientation="h",
        y=list(range(len(rows))),
        x=[row["added"] / scale for row in rows],
        marker_color=[_COLOURS[row["responsible"]] for row in rows],
        customdata=[(format_bytes(row["bytes"]), format_bytes(row["added"])) for row in rows],
        hovertemplate="%{customdata[0]}, %{customdata[1]} added<extra></extra>",
        showlegend=False,
    )
    made.update_layout(barmode="stack")
    return made
