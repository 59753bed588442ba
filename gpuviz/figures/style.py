"""Common style of all charts."""

from typing import TYPE_CHECKING, Any

from gpuviz.installation import import_extra

if TYPE_CHECKING:
    import plotly.graph_objects as go

# Equal contrast on white and on JupyterLab's dark background.
TEXT = "#747a84"

MOST_BARS = 15
_LONGEST_LABEL = 48
_GRID = "rgba(138,143,152,.3)"


def figure(title: str, *, x_title: str, y_title: str, **layout: Any) -> "go.Figure":
    """Return an empty figure that is readable on light and dark pages.

    Raises:
        MissingPackageError: Plotly is not installed.
    """
    axis = {"gridcolor": _GRID, "zerolinecolor": _GRID, "automargin": True}
    return import_extra("plotly.graph_objects", "charts").Figure(
        layout={
            "title": {"text": title, "font": {"size": 14}, "x": 0.01, "xanchor": "left"},
            "xaxis": axis | {"title": {"text": x_title}},
            "yaxis": axis | {"title": {"text": y_title}},
            "template": "none",
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "font": {"color": TEXT, "size": 12},
            "legend": {"orientation": "h", "y": 1.08, "x": 1, "xanchor": "right"},
            "margin": {"l": 60, "r": 20, "t": 56, "b": 48},
            "height": 360,
            "autosize": True,
            **layout,
        },
    )


def bars(title: str, labels: list[str], *, x_title: str) -> "go.Figure":
    """Return an empty figure for horizontal bars, the first of ``labels`` at the top."""
    rows = max(3, len(labels))
    made = figure(title, x_title=x_title, y_title="", height=120 + 24 * rows, bargap=0.25)
    made.update_yaxes(
        autorange="reversed",
        tickmode="array",
        tickvals=list(range(len(labels))),
        ticktext=[plain(label) for label in labels],
    )
    return made


def plain(text: str) -> str:
    """Return a text that Plotly shows literally, shortened in the middle if it is long."""
    if len(text) > _LONGEST_LABEL:
        half = _LONGEST_LABEL // 2
        text = f"{text[: half - 1]}…{text[-half:]}"
    return escaped(text)


def escaped(text: str) -> str:
    """Return a text without the HTML markup that Plotly interprets."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def seconds_scale(duration_ns: int) -> tuple[float, str]:
    """Return the divisor of times in ns for an axis, and the unit."""
    for unit, size in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if duration_ns >= 2 * size:
            return size, unit
    return 1.0, "ns"


def bytes_scale(largest: int) -> tuple[int, str]:
    """Return the divisor of sizes for an axis, and the unit."""
    for power, unit in enumerate(("TiB", "GiB", "MiB", "KiB")):
        size = 1 << (10 * (4 - power))
        if largest >= size:
            return size, unit
    return 1, "B"
