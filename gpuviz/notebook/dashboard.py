"""`gpuviz.dashboard`: the live view, its buttons, numbers, findings and charts."""

import sys
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import ipywidgets

from gpuviz.conclusions.numbers import live_headline
from gpuviz.errors import GpuvizError
from gpuviz.notebook.cells import on_cell_end, running_cell
from gpuviz.notebook.charts import Charts
from gpuviz.notebook.closing import ClosedByRequest, close_parts
from gpuviz.notebook.control import Control, shared_control
from gpuviz.notebook.findings import Findings
from gpuviz.notebook.finished import Finished
from gpuviz.notebook.kept_alive import KeptAlive
from gpuviz.notebook.numbers import numbers_html
from gpuviz.notebook.refresher import Refresher
from gpuviz.notebook.static_output import StaticOutput
from gpuviz.notebook.timeline import Timeline
from gpuviz.present.markup import html
from gpuviz.recorder.recorder import Recorder
from gpuviz.recording import Recording
from gpuviz.terminal import write_line

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuviz.recorder.status import RecorderStatistics


def dashboard(shown: "Recorder | Recording | None" = None) -> "Dashboard":
    """Return a widget that shows a recorder live, or a recording.

    Args:
        shown: What to show; if None, always the active or latest recorder of the process.

    Raises:
        TypeError: ``shown`` is neither a recorder nor a recording.
    """
    if shown is not None and not isinstance(shown, Recorder | Recording):
        raise TypeError(
            f"expected a Recorder or a Recording, got {shown!r:.80}; "
            "gpuviz.load(path) makes a Recording of a file"
        )
    return Dashboard(shared_control(), Finished(shown) if isinstance(shown, Recording) else shown)


class Dashboard(ClosedByRequest, ipywidgets.VBox):  # type: ignore[misc] # ipywidgets has no types
    """The timeline of a recorder, with buttons, headline numbers, findings and charts.

    Args:
        control: Starts and stops recorders.
        recorder: The recorder or finished recording to show; if None, the recorder of ``control``.
    """

    def __init__(self, control: Control, recorder: "Recorder | Finished | None" = None) -> None:
        self._control = control
        self._only = recorder
        self._shown: Recorder | Finished | None = None
        self._timeline: Any = None
        self._was_recording = False
        self._lock = threading.RLock()
        self._numbers = ipywidgets.HTML()
        self._numbers_of: RecorderStatistics | None = None
        self._followed: Recorder | None = None
        self._unfollow: Callable[[], None] = lambda: None
        self._message = ipywidgets.HTML()
        self._findings = Findings(self._recording)
        self._charts = Charts(self._recording)
        self._kept_alive = KeptAlive()
        self._buttons = self._make_buttons()
        # A separate box: replacing a child makes the page set up all later children again.
        self._place = ipywidgets.VBox()
        row = ipywidgets.HBox(list(self._buttons.values()))
        self._refresher = Refresher(self._tick)
        self._static_output = StaticOutput(lambda: self.recorder)
        super().__init__(
            [
                row,
                self._message,
                self._numbers,
                self._kept_alive,
                self._findings,
                self._place,
                self._charts,
            ]
        )
        self.add_class(self._static_output.live_class)
        self.refresh()
        self._refresher.start()
        self._findings.start()

    @property
    def recorder(self) -> "Recorder | Finished | None":
        """The recorder shown; None before the first."""
        return self._only or self._control.recorder

    def refresh(self) -> None:
        """Show everything recorded so far; thread-safe."""
        recorder = self.recorder
        if isinstance(recorder, Recorder):
            recorder.read_statistics()
        with self._lock:
            self._show()
            self._charts.refresh()
        self._findings.request(at_once=True)

    def _show(self) -> None:
        self._show_recorder()
        recorder = self.recorder
        if recorder is None:
            self._numbers.value = (
                "Nothing has been recorded yet: press Start, or run %gpuviz start."
            )
        elif recorder.statistics is not self._numbers_of:
            self._numbers_of = recorder.statistics
            self._numbers.value = numbers_html(live_headline(self._numbers_of))
        recording = recorder is not None and recorder.is_recording
        self._was_recording = recording
        disabled = {
            "Start": recording or self._only is not None,
            "Stop": not recording,
            "Clear": recorder is None or self._only is not None,
            "Snapshot": recorder is None,
            "Report": recorder is None,
            "Leaks": isinstance(self._only, Finished),
        }
        for name, button in self._buttons.items():
            button.disabled = disabled[name]
            # A given recorder cannot be started or cleared here, and a recording not even stopped.
            never = self._only is not None and name in {"Start", "Clear"}
            never |= isinstance(self._only, Finished) and name in {"Stop", "Leaks"}
            button.layout.display = "none" if never else None

    def close(self) -> None:
        """Remove the view from the notebook; a recording in progress continues."""
        on_cell_end(self._cell_ended, wanted=False)
        self._refresher.stop()
        self._follow(None)
        self._static_output.close()
        self._findings.close()
        self._charts.close()
        close_parts(self)
        super().close()

    def __repr__(self) -> str:
        return f"<Dashboard{', closed' if self.comm is None else ''}>"

    def _ipython_display_(self) -> None:
        if self.comm is None:
            write_line(
                sys.stdout, "This dashboard is closed; `gpuviz.dashboard()` makes a new one."
            )
            return
        self._control.add_view(self, running_cell()[0])
        on_cell_end(self._cell_ended, wanted=False)
        on_cell_end(self._cell_ended, wanted=True)
        self._static_output.display(self)

    def _recording(self) -> "Recording | None":
        return None if self.recorder is None else self.recorder.recording

    def _tick(self) -> bool:
        if self.comm is None:
            return False
        is_watched = self._was_recording and self._timeline.is_watched
        self._follow(self.recorder if is_watched else None)
        has_changed = self._has_changed()
        with self._lock:
            if has_changed or is_watched:
                self._show()
                self._charts.refresh_if_due(at_once=has_changed)
        if has_changed:
            self._findings.request(at_once=True)
        return True

    def _cell_ended(self, *_: object) -> None:
        recorder = self.recorder
        if recorder is not None and recorder.is_recording:
            self._findings.request()

    def _follow(self, recorder: "Recorder | Finished | None") -> None:
        """Let new statistics of this recorder, and only this one, wake the refresher."""
        if recorder is not self._followed:
            self._unfollow()
            self._unfollow = lambda: None
            self._followed = recorder if isinstance(recorder, Recorder) else None
            if self._followed is not None:
                self._unfollow = self._followed.follow_statistics(self._refresher.wake)

    def _has_changed(self) -> bool:
        recorder = self.recorder
        recording = recorder is not None and recorder.is_recording
        return recorder is not self._shown or recording != self._was_recording

    def _show_recorder(self) -> None:
        recorder = self.recorder
        if self._timeline is not None and recorder is self._shown:
            return
        before = self._timeline
        self._shown = recorder
        self._timeline = timeline_of(recorder)
        self._place.children = (self._timeline,)
        if before is not None:
            close_parts(before)
            before.close()

    def _make_buttons(self) -> "dict[str, ipywidgets.Button]":
        actions: tuple[tuple[str, str, str, Callable[[], str]], ...] = (
            ("Start", "play", "Begin recording", self._start),
            ("Stop", "stop", "End recording", self._stop),
            ("Clear", "trash", "Discard what was recorded", self._clear),
            ("Snapshot", "camera", "Save what was recorded as a .gpuviz file", self._snapshot),
            ("Report", "file", "Save what was recorded as an HTML page", self._report),
            ("Leaks", "search", "Show what keeps GPU memory alive now", self._leaks),
        )
        buttons = {}
        for name, icon, tooltip, action in actions:
            button = ipywidgets.Button(description=name, icon=icon, tooltip=tooltip)
            button.on_click(partial(self._press, action))
            buttons[name] = button
        return buttons

    def _press(self, action: "Callable[[], str]", _button: object) -> None:
        try:
            text = action()
        except (GpuvizError, OSError, ValueError) as error:
            text = str(error)
        self._message.value = html("{}", text)
        self.refresh()
        self._static_output.refresh()

    def _start(self) -> str:
        self._control.start_again()
        return ""

    def _stop(self) -> str:
        recorder = self.recorder
        if isinstance(recorder, Recorder):
            recorder.stop()
        return ""

    def _clear(self) -> str:
        self._control.clear()
        return ""

    def _snapshot(self) -> str:
        return f"Wrote {self._to_save().save(_file_name('gpuviz'))}"

    def _report(self) -> str:
        return f"Wrote {self._to_save().report(_file_name('html'))}"

    def _leaks(self) -> str:
        self._kept_alive.search()
        return ""

    def _to_save(self) -> "Recording":
        return self._only.recording if self._only is not None else self._control.recording


def timeline_of(recorder: "Recorder | Finished | None") -> Any:
    """Return a widget that shows a recorder live; an empty one if there is no recorder."""
    if recorder is None:
        return ipywidgets.HTML()
    return Timeline(recorder.recording if isinstance(recorder, Finished) else recorder)


def _file_name(suffix: str) -> str:
    return time.strftime(f"gpuviz-%Y%m%d-%H%M%S.{suffix}")
