"""`gpuviz.dashboard`: the live view, with buttons, numbers and findings."""

import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import traitlets

from gpuviz.conclusions.live_numbers import live_headline
from gpuviz.errors import GpuvizError, RecorderError
from gpuviz.notebook.cells import on_cell_end, running_cell
from gpuviz.notebook.control import Control, shared_control
from gpuviz.notebook.drawer_sections import drawer_sections
from gpuviz.notebook.findings import Findings
from gpuviz.notebook.finished import Finished
from gpuviz.notebook.kept_alive import KeptAlive
from gpuviz.notebook.numbers import numbers_html
from gpuviz.notebook.refresher import Refresher
from gpuviz.notebook.static_output import StaticOutput
from gpuviz.notebook.timeline import Timeline
from gpuviz.recorder.recorder import Recorder
from gpuviz.recorder.status import RecorderStatistics
from gpuviz.recording import Recording
from gpuviz.terminal import write_line

# What buttons do, as their tooltips say.
_BUTTONS = {
    "Start": "Begin recording",
    "Stop": "End recording",
    "Clear": "Discard what was recorded",
    "Snapshot": "Save what was recorded as a .gpuviz file",
    "Report": "Save what was recorded as an HTML page",
    "Leaks": "Show what keeps GPU memory alive now",
}


def dashboard(shown: Recorder | Recording | None = None) -> "Dashboard":
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


class Dashboard(Timeline):
    """The timeline of a recorder, with buttons, headline numbers and findings: one widget.

    Args:
        control: Starts and stops recorders.
        recorder: The recorder or finished recording to show; if None, the recorder of ``control``.

    Attributes:
        buttons: Name, tooltip and whether it is disabled of each button.
        message: What the last button did.
        numbers: The headline numbers as HTML.
        held: What keeps memory alive as HTML, after the button Leaks.
        releases: Label and code of each button that lets go of it.
        findings: The findings as HTML.
        sections: Device, name, title and HTML of the drawer's sections of a finished recording.
    """

    buttons: Any = traitlets.List().tag(sync=True)
    message = traitlets.Unicode().tag(sync=True)
    numbers = traitlets.Unicode().tag(sync=True)
    held = traitlets.Unicode().tag(sync=True)
    releases: Any = traitlets.List().tag(sync=True)
    findings = traitlets.Unicode().tag(sync=True)
    sections: Any = traitlets.List().tag(sync=True)

    def __init__(self, control: Control, recorder: Recorder | Finished | None = None) -> None:
        self._control = control
        self._only = recorder
        self._shown = self.recorder
        self._was_recording = False
        self._lock = threading.RLock()
        self._numbers_of: RecorderStatistics | None = None
        self._explained: Recording | None = None
        self._followed: Recorder | None = None
        self._end_following: Callable[[], None] = lambda: None
        self._findings = Findings(
            self._recording,
            lambda text: self._set("findings", text),
            self._explain,
        )
        self._kept_alive = KeptAlive(
            lambda text: self._set("held", text), lambda offers: self._set("releases", offers)
        )
        self._refresher = Refresher(self._tick)
        self._static_output = StaticOutput(lambda: self.recorder)
        super().__init__(_source(self._shown))
        self.add_class(self._static_output.live_class)
        self.refresh()
        self._refresher.start()
        self._findings.start()

    @property
    def recorder(self) -> Recorder | Finished | None:
        """The recorder shown; None before the first."""
        return self._only or self._control.recorder

    def refresh(self) -> None:
        """Show everything recorded so far; thread-safe."""
        recorder = self.recorder
        if isinstance(recorder, Recorder):
            recorder.read_statistics()
        with self._lock:
            self._show()
        self._findings.request(at_once=True)

    def _set(self, name: str, value: object) -> None:
        # A thread may have something to show when the widget has been closed.
        if self.comm is not None:
            # marimo makes an object of a text that is marked as HTML.
            setattr(self, name, str(value) if isinstance(value, str) else value)

    def _show(self) -> None:
        recorder = self.recorder
        if recorder is not self._shown:
            self._shown = recorder
            self._explained = None
            self.show(_source(recorder))
        if recorder is None:
            self._numbers_of = None
            self.numbers = "Nothing has been recorded yet: press Start, or run %gpuviz start."
        elif recorder.statistics is not self._numbers_of:
            self._numbers_of = recorder.statistics
            if recorder.is_recording:
                self._explained = None
            self._show_numbers()
        recording = recorder is not None and recorder.is_recording
        self._was_recording = recording
        disabled = {
            "Start": recording,
            "Stop": not recording,
            "Clear": recorder is None,
            "Snapshot": recorder is None,
            "Report": recorder is None,
        }
        # A given recorder cannot be started or cleared here, and a recording not even stopped.
        never = set() if self._only is None else {"Start", "Clear"}
        never |= {"Stop", "Leaks"} if isinstance(self._only, Finished) else set()
        self.buttons = [
            (name, tooltip, disabled.get(name, False))
            for name, tooltip in _BUTTONS.items()
            if name not in never
        ]

    def _show_numbers(self) -> None:
        if self._numbers_of is not None:
            # The header of the charts has the time.
            shown = live_headline(self._numbers_of, finished=self._explained)[1:]
            self._set("numbers", numbers_html(shown))

    def _explain(self, finished: Recording | None) -> None:
        """Show what a report says about a finished recording; nothing if None."""
        with self._lock:
            self._explained = finished
            self._show_numbers()
        self._set("sections", [] if finished is None else drawer_sections(finished))

    def close(self) -> None:
        """Remove the view from the notebook; a recording in progress continues."""
        on_cell_end(self._cell_ended, wanted=False)
        self._refresher.stop()
        self._follow(None)
        self._static_output.close()
        self._findings.close()
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

    def _recording(self) -> Recording | None:
        try:
            return None if self.recorder is None else self.recorder.recording
        except RecorderError:
            # It has not been started.
            return None

    def _tick(self) -> bool:
        if self.comm is None:
            return False
        is_watched = self._was_recording and self.is_watched
        self._follow(self.recorder if is_watched else None)
        has_changed = self._has_changed()
        with self._lock:
            if has_changed or is_watched:
                self._show()
        if has_changed:
            self._findings.request(at_once=True)
        return True

    def _cell_ended(self, *_: object) -> None:
        recorder = self.recorder
        if recorder is not None and recorder.is_recording:
            self._findings.request()

    def _follow(self, recorder: Recorder | Finished | None) -> None:
        """Let new statistics of this recorder, and only this one, wake the refresher."""
        if recorder is not self._followed:
            self._end_following()
            self._end_following = lambda: None
            self._followed = recorder if isinstance(recorder, Recorder) else None
            if self._followed is not None:
                self._end_following = self._followed.follow_statistics(self._refresher.wake)

    def _has_changed(self) -> bool:
        recorder = self.recorder
        recording = recorder is not None and recorder.is_recording
        if recorder is not self._shown or recording != self._was_recording:
            return True
        if recorder is None or recording:
            return False
        # The last statistics follow when everything has been stored.
        return recorder.statistics is not self._numbers_of

    def _does(self, request: dict[Any, Any]) -> bool:
        name, number = request.get("press"), request.get("release")
        if isinstance(name, str) and name in {each for each, _, _ in self.buttons}:
            self._press(name)
        elif type(number) is int and 0 <= number < len(self.releases):
            self._kept_alive.let_go(number)
        else:
            return False
        return True

    def _press(self, name: str) -> None:
        try:
            text = self._act(name)
        except (GpuvizError, OSError, ValueError) as error:
            text = str(error)
        self.message = text
        self.refresh()
        self._static_output.refresh()

    def _act(self, name: str) -> str:
        """Do what a button says; return what there is to say about it."""
        match name:
            case "Start":
                self._control.start_again()
            case "Stop" if isinstance(self.recorder, Recorder):
                self.recorder.stop()
            case "Clear":
                self._control.clear()
            case "Snapshot":
                return f"Wrote {self._to_save().save(_file_name('gpuviz'))}"
            case "Report":
                return f"Wrote {self._to_save().report(_file_name('html'))}"
            case "Leaks":
                self._kept_alive.search()
        return ""

    def _to_save(self) -> Recording:
        return self._only.recording if self._only is not None else self._control.recording


def _source(recorder: Recorder | Finished | None) -> Recorder | Recording | None:
    """Return what a timeline shows of a recorder."""
    return recorder.recording if isinstance(recorder, Finished) else recorder


def _file_name(suffix: str) -> str:
    return time.strftime(f"gpuviz-%Y%m%d-%H%M%S.{suffix}")
