"""Charts of a dashboard: one Plotly widget and a menu."""

import time
from typing import TYPE_CHECKING, Any

import ipywidgets

from gpuviz.errors import MissingPackageError
from gpuviz.figures.copies import copies_figure
from gpuviz.figures.fragmentation import fragmentation_figure
from gpuviz.figures.free_blocks import free_blocks_figure
from gpuviz.figures.kernels import kernels_figure
from gpuviz.figures.peak_chain import peak_chain_figure
from gpuviz.figures.sites import sites_figure
from gpuviz.installation import import_extra
from gpuviz.notebook.closing import ClosedByRequest, close_parts
from gpuviz.notebook.width import Width
from gpuviz.present.markup import html

if TYPE_CHECKING:
    from collections.abc import Callable

    import plotly.graph_objects as go

    from gpuviz.recording import Recording

CHARTS: dict[str, "Callable[[Recording], Any]"] = {
    "Fragmentation over time": fragmentation_figure,
    "Free blocks by size": free_blocks_figure,
    "Peak of memory": peak_chain_figure,
    "Lines by memory at the peak": sites_figure,
    "Lines by memory in total": lambda recording: sites_figure(recording, "total"),
    "Kernels by time": kernels_figure,
    "Copies by direction": copies_figure,
}


# Largest share of the time spent drawing charts, which read the whole recording.
MOST_OF_TIME = 0.01
# The height of a Plotly widget without an explicit one; any other height fixes the width as well.
_HEIGHT = 360


class Charts(ClosedByRequest, ipywidgets.VBox):  # type: ignore[misc] # ipywidgets has no types
    """Charts of a recording, one at a time.

    Plotly's widget adds megabytes to the notebook, so it is created once, when first opened.

    Args:
        recording: Returns the recording to draw, or None.
    """

    def __init__(self, recording: "Callable[[], Recording | None]") -> None:
        self._recording = recording
        self._widget: Any = None
        self._shown: list[Any] = []
        self._due_s = 0.0
        self.opener = ipywidgets.ToggleButton(description="Charts", tooltip="Show charts")
        self.choice = ipywidgets.Dropdown(options=list(CHARTS), description="Chart")
        super().__init__([self.opener])
        self.opener.observe(lambda _: self._open_or_close(), names="value")
        self.choice.observe(lambda _: self.refresh(), names="value")

    @property
    def is_open(self) -> bool:
        """Whether a chart is shown."""
        return bool(self.opener.value)

    def refresh(self) -> None:
        """Redraw the chosen chart, if one is shown."""
        recording = self._recording() if self.is_open else None
        if recording is None or self._widget is None:
            return
        drawn = _as_high_as_all(CHARTS[self.choice.value](recording))
        with self._widget.batch_update():
            self._widget.data = []
            self._widget.add_traces(drawn.data)
            self._widget.layout = drawn.layout

    def refresh_if_due(self, *, at_once: bool = False) -> None:
        """Redraw the chosen chart, less often if drawing takes long."""
        if at_once or time.monotonic() >= self._due_s:
            began = time.thread_time()
            self.refresh()
            self._due_s = time.monotonic() + (time.thread_time() - began) / MOST_OF_TIME

    def close(self) -> None:
        """Close all widgets, including hidden ones."""
        self.children = [self.opener, self.choice, *self._shown]
        close_parts(self)
        super().close()

    def _open_or_close(self) -> None:
        if not self.is_open:
            self.children = [self.opener]
            return
        if self._widget is None:
            try:
                plotly = import_extra("plotly.graph_objects", "charts")
            except MissingPackageError as error:
                self.children = [self.opener, ipywidgets.HTML(html("{}", error))]
                return
            self._widget = plotly.FigureWidget(layout={"autosize": True})
            self._widget._config = {"displayModeBar": False, "responsive": True}  # noqa: SLF001 - as Figure.show(config=)
            self._shown = [self._widget, Width()]
        self.children = [self.opener, self.choice, *self._shown]
        self.refresh()


def _as_high_as_all(drawn: "go.Figure") -> "go.Figure":
    """Return a chart without a height; a lower one fills the upper part of the space."""
    margins = drawn.layout.margin.t + drawn.layout.margin.b
    filled = min(1.0, (drawn.layout.height - margins) / (_HEIGHT - margins))
    drawn.update_layout(height=None, yaxis_domain=[1 - filled, 1])
    return drawn
