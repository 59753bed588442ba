"""The charts of a dashboard: one Plotly widget, and a choice of what it shows."""

from typing import TYPE_CHECKING, Any

import ipywidgets

from gpuviz.figures.copies import copies_figure
from gpuviz.figures.fragmentation import fragmentation_figure
from gpuviz.figures.free_blocks import free_blocks_figure
from gpuviz.figures.kernels import kernels_figure
from gpuviz.figures.sites import sites_figure
from gpuviz.notebook.closing import close_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuviz.recording import Recording

CHARTS: dict[str, "Callable[[Recording], Any]"] = {
    "Fragmentation over time": fragmentation_figure,
    "Free blocks by size": free_blocks_figure,
    "Lines by memory at the peak": sites_figure,
    "Lines by memory in all": lambda recording: sites_figure(recording, "total"),
    "Kernels by time": kernels_figure,
    "Copies by direction": copies_figure,
}


class Charts(ipywidgets.VBox):  # type: ignore[misc] # ipywidgets has no types
    """Charts of a recording, one at a time.

    Plotly's widget carries megabytes into the notebook, so it is made when first asked for, once.

    Args:
        recording: Returns the recording to draw, None if there is none.
    """

    def __init__(self, recording: "Callable[[], Recording | None]") -> None:
        self._recording = recording
        self._widget: Any = None
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
        """Draw the chosen chart anew, if one is shown."""
        recording = self._recording() if self.is_open else None
        if recording is None or self._widget is None:
            return
        drawn = CHARTS[self.choice.value](recording)
        with self._widget.batch_update():
            self._widget.data = []
            self._widget.add_traces(drawn.data)
            self._widget.layout = drawn.layout

    def close(self) -> None:
        """Take all of it out of the notebook, also what is not shown now."""
        self.children = [self.opener, self.choice, *([self._widget] if self._widget else [])]
        close_parts(self)
        super().close()

    def _open_or_close(self) -> None:
        if not self.is_open:
            self.children = [self.opener]
            return
        if self._widget is None:
            import plotly.graph_objects as go

            self._widget = go.FigureWidget()
            self._widget._config = {"displayModeBar": False, "responsive": True}  # noqa: SLF001 - as Figure.show(config=)
        self.children = [self.opener, self.choice, self._widget]
        self.refresh()
