"""Static output of a dashboard, for notebooks that are only read."""

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from IPython.core.displaypub import DisplayPublisher
from IPython.core.getipython import get_ipython
from IPython.display import display, publish_display_data, update_display

from gpuviz.notebook.cell_markup import as_html, as_text
from gpuviz.notebook.cell_result import cell_result
from gpuviz.notebook.finished import Finished
from gpuviz.ownership.array_names import ArrayNames
from gpuviz.present.markup import html

if TYPE_CHECKING:
    from gpuviz.recorder.recorder import Recorder

# With more events, drawing the picture would delay the next cell.
_MOST_EVENTS = 200_000
_NOTHING = "gpuviz: nothing has been recorded yet."


class StaticOutput:
    """A picture and text of a recording in a separate output, refreshed when a cell ends.

    If the page has a live view with data, a style rule on the view's class hides the picture. The
    view itself is never displayed again, because that would reset its zoom.

    Args:
        recorder: Returns the recorder to show, or None.

    Attributes:
        live_class: The class of the live view.
    """

    def __init__(self, recorder: "Callable[[], Recorder | Finished | None]") -> None:
        self._recorder = recorder
        self._id = secrets.token_hex(6)
        self._shell: Any = None
        self._is_displayed = False
        self._ended: tuple[Recorder | Finished | None, bool] = (None, False)
        self.live_class = f"gpuviz-live-{self._id}"

    def display(self, widget: Any) -> None:
        """Show a widget, and below it the static output for pages without widgets."""
        text = {"text/plain": "gpuviz dashboard: live in a notebook; otherwise see below."}
        bundle, metadata = widget._repr_mimebundle_()
        publish_display_data(bundle | text, metadata)  # type: ignore[no-untyped-call] # IPython's
        is_first = not self._is_displayed
        self._is_displayed = True
        self._shell = get_ipython()
        display(  # type: ignore[no-untyped-call] # IPython's
            self._bundle(), raw=True, display_id=self._id
        )
        if is_first and self._shell is not None:
            self._shell.events.register("post_run_cell", self._cell_ended)

    def refresh(self) -> None:
        """Show what has been recorded so far."""
        if self._is_displayed and not self._is_terminal:
            update_display(  # type: ignore[no-untyped-call] # IPython's
                self._bundle(), raw=True, display_id=self._id
            )

    @property
    def _is_terminal(self) -> bool:
        # Only a terminal uses IPython's own publisher, which would print everything again.
        return self._shell is not None and type(self._shell.display_pub) is DisplayPublisher

    def close(self) -> None:
        """Stop refreshing."""
        shell, self._shell = self._shell, None
        self._is_displayed = False
        if shell is not None:
            with suppress(ValueError):
                shell.events.unregister("post_run_cell", self._cell_ended)

    def _cell_ended(self, *_: Any) -> None:
        recorder = self._recorder()
        state = (recorder, recorder is not None and recorder.is_recording)
        if state[1] or state != self._ended:
            self.refresh()
        self._ended = state

    def _bundle(self) -> dict[str, str]:
        recorder = self._recorder()
        if recorder is None:
            return {"text/plain": _NOTHING, "text/html": self._hidden(html("{}", _NOTHING))}
        recording = recorder.recording
        if recorder.is_recording:
            # A recording in progress is always incomplete; the note would be noise.
            recording = recording.with_manifest(replace(recording.manifest, complete=True))
        if recording.table("memory_events").num_rows > _MOST_EVENTS:
            text = f"gpuviz: {recording!r}; too long to draw after each cell."
            return {"text/plain": text, "text/html": self._hidden(html("{}", text))}
        variables = {} if self._shell is None else self._shell.user_ns
        is_ours = recording.manifest.process_id == os.getpid()
        result = cell_result(
            recording,
            (0, recording.duration_ns),
            streams=recorder.status().streams,
            names=ArrayNames(variables) if is_ours else None,
            subject="recording",
        )
        return {"text/plain": as_text(result), "text/html": self._hidden(as_html(result))}

    def _hidden(self, shown: str) -> str:
        own = f"gpuviz-static-{self._id}"
        live = f".{self.live_class}"
        is_live = f"body:has({live}):not(:has({live} [data-state=absent]))"
        style = html("<style>{} .{}{{display:none}}</style>", is_live, own)
        return style + html('<div class="{}">{}</div>', own, shown)
