"""Start, stop and storage of a notebook's recordings."""

import weakref
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from gpuviz.errors import RecorderError
from gpuviz.recorder.record import record
from gpuviz.recorder.recorder import Recorder
from gpuviz.recording import Recording

if TYPE_CHECKING:
    from gpuviz.simulation.gpu import SimulatedGPU


@cache
def shared_control() -> "Control":
    """Return the control shared by the magics and dashboards of this process."""
    return Control()


class View(Protocol):
    """A view of a recorder in a notebook."""

    def close(self) -> None:
        """Stop showing the recorder and release everything."""


class Control:
    """Starts and stops the process's recorder, and keeps the latest one.

    It also finds a recorder that the program itself has started.
    """

    def __init__(self) -> None:
        self._latest: Recorder | None = None
        self._own: Recorder | None = None
        self._again: Callable[[], Recorder] | None = None
        self._device: SimulatedGPU | None = None
        self._views: list[tuple[str, weakref.ref[View]]] = []

    @property
    def recorder(self) -> Recorder | None:
        """The active recorder, else the latest one; None before the first."""
        active = Recorder.active()
        if active is not None:
            self._latest = active
        return self._latest

    @property
    def recording(self) -> Recording:
        """The recording of the latest recorder up to now.

        Raises:
            RecorderError: There is no recorder.
        """
        if self.recorder is None:
            raise RecorderError("Nothing has been recorded yet; run `%gpuviz start` first")
        return self.recorder.recording

    @property
    def device(self) -> "SimulatedGPU | None":
        """The simulated GPU of the latest recording started here; None for CuPy."""
        return self._device

    def start(
        self,
        path: str | None = None,
        *,
        device: "SimulatedGPU | None" = None,
        **options: Any,
    ) -> Recorder:
        """Start a recorder and return it; the arguments are those of `gpuviz.record`.

        Raises:
            RecorderError: A recording is already in progress.
        """
        if Recorder.active() is not None:
            raise RecorderError("A recording is already in progress; run `%gpuviz stop` first")

        def begin(path: str | None) -> Recorder:
            recorder = record(path, device=device, **options)
            recorder.announces = False
            recorder.start()
            return recorder

        self._own = self._latest = begin(path)
        self._device = device
        self._again = lambda: begin(None)
        return self._latest

    def stop(self) -> Recording:
        """Stop the active recorder, even if the program started it, and return its recording.

        Raises:
            RecorderError: No recording is in progress.
        """
        recorder = self.recorder
        if recorder is None or not recorder.is_recording:
            raise RecorderError("No recording is in progress; run `%gpuviz start` first")
        return recorder.stop()

    def add_view(self, view: View, cell: str) -> None:
        """Add a view shown by a cell, and close the views of the cell's previous run.

        Views that another cell or the new run also shows stay open.

        Args:
            view: The view.
            cell: Id of the cell; empty if unknown.
        """
        added = weakref.ref(view)
        before = [each for of, each in self._views if cell and of == cell]
        self._views = [(of, each) for of, each in self._views if not cell or of != cell]
        self._views.append((cell, added))
        shown = [each for _, each in self._views]
        for each in before:
            if each not in shown:
                _close(each)

    def end(self) -> None:
        """Close all views, stop the recorder that was started here, and discard it."""
        views, self._views = self._views, []
        for _, view in views:
            _close(view)
        if self._own is not None and self._own.is_recording:
            self._own.stop()
        self._own = self._latest = self._again = self._device = None

    def check_records(self, device: "SimulatedGPU") -> None:
        """Check that an active recorder that was started here records this device.

        Raises:
            RecorderError: It records another device.
        """
        if self._own is not None and self._own.is_recording and self._device is not device:
            raise RecorderError(
                "A recording of another GPU is in progress; run `%gpuviz stop` first"
            )

    def start_again(self) -> Recorder:
        """Start a recorder of the device recorded last, in memory; CuPy by default.

        Raises:
            RecorderError: A recording is already in progress.
        """
        if self._again is None:
            return self.start()
        if Recorder.active() is not None:
            raise RecorderError("A recording is already in progress; run `%gpuviz stop` first")
        self._own = self._latest = self._again()
        return self._own

    def clear(self) -> None:
        """Discard what was recorded; a recording in progress continues in memory.

        Raises:
            RecorderError: The program itself started the active recorder.
        """
        active = Recorder.active()
        if active is None:
            self._latest = None
            return
        if self._again is None or active is not self._own:
            raise RecorderError(
                "The program itself started this recording; stop it there, or run `%gpuviz stop`",
            )
        active.stop()
        self._own = self._latest = None
        self._own = self._latest = self._again()

    def save(self, path: str, *, force: bool = False) -> Path:
        """Write the recording up to now as a ``.gpuviz`` file, and return its path."""
        return self.recording.save(path, overwrite=force)

    def report(self, path: str, *, force: bool = False, redact: bool = False) -> Path:
        """Write the recording up to now as an HTML report, and return its path."""
        return self.recording.report(path, overwrite=force, redact=redact)


def _close(view: weakref.ref[View]) -> None:
    alive = view()
    if alive is not None:
        alive.close()
