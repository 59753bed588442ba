"""Chart of unused reserved memory over time."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.data.columns import plain
from gpuviz.figures.palette import ALLOCATED, FREE, RESERVED
from gpuviz.figures.style import bytes_scale, figure, seconds_scale

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from gpuviz.recording import Recording

_MOST_POINTS = 2000


def fragmentation_figure(recording: "Recording", device: int | None = None) -> "go.Figure":
    """Return a chart of reserved and allocated bytes and the largest free block over time.

    If there are too many points, those with the most unused reserved memory are drawn; none are
    averaged.

    Raises:
        ValueError: The recording has no such device.
    """
    device = recording.device_or_first(device)
    levels = recording.memory_levels
    levels = levels.filter(plain(levels["device"]) == device)
    levels = levels.take(_moments(plain(levels["reserved"]) - plain(levels["allocated"])))
    columns = {name: plain(levels[name]) for name in levels.schema.names}
    scale, unit = bytes_scale(int(columns["reserved"].max(initial=0)))
    time_scale, time_unit = seconds_scale(recording.duration_ns)
    made = figure(
        f"Reserved and not in use, device {device}",
        x_title=f"time ({time_unit})",
        y_title=unit,
        hovermode="x unified",
    )
    lines = (
        ("reserved", "reserved", RESERVED, "dash"),
        ("allocated", "allocated", ALLOCATED, "solid"),
        ("largest_free", "largest free block", FREE, "dot"),
    )
    for column, name, colour, dash in lines:
        values = columns[column]
        made.add_scatter(
            x=columns["time"] / time_scale,
            y=[None if value < 0 else value / scale for value in values.tolist()],
            name=name,
            mode="lines",
            line={"shape": "hv", "color": colour, "dash": dash},
            hovertemplate=f"%{{y:.3~f}} {unit}",
        )
    return made


def _moments(values: np.ndarray) -> np.ndarray:
    """Return the rows to draw: the first and the highest of each section."""
    if len(values) <= _MOST_POINTS:
        return np.arange(len(values))
    edges = np.linspace(0, len(values), _MOST_POINTS // 2 + 1).astype(np.int64)
    stretches = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    rows = {row for a, b in stretches for row in (a, a + int(values[a:b].argmax()))}
    return np.array(sorted(rows | {len(values) - 1}))
