"""Start, stop and storage of a notebook's recordings."""

import weakref
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from gpuviz.errors import RecorderError
from gpuviz.recorder.record import AllocatorMode, record
from gpuviz.recorder.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpuviz.recording.recording import Recording
    from gpuviz.simulation.gpu import SimulatedGPU


@cache
def shared_control() -> "Control":
    """Return what the magics and the dashboards of this process have in common."""
    return Control()


class View(Protocol):
    """What shows a recorder in a notebook."""

    def close(self) -> None:
        """Show nothing more, and leave nothing behind."""


class Control:
    """Starts and stops the process's recorder, and remembers the latest one.

    A recorder that the program itself has started is found, too.
    """

    def __init__(self) -> None:
        self._latest: Recorder | None = None
        self._own: Recorder | None = None
        self._again: Callable[[], Recorder] | None = None
        self._device: SimulatedGPU | None = None
        self._views: list[tuple[str, weakref.ref[View]]] = []

    @property
    def recorder(self) -> Recorder | None:
        """The recorder that records now, else the one that did last; None before the first."""
        active = Recorder.active()
        if active is not None:
            self._latest = active
        return self._latest

    @property
    def recording(self) -> "Recording":
        """What the latest recorder has recorded until now.

        Raises:
            RecorderError: There is none.
        """
        if self.recorder is None:
            raise RecorderError("Nothing has been recorded yet: `%gpuviz start` first")
        return self.recorder.recording

    @property
    def device(self) -> "SimulatedGPU | None":
        """What the latest recording that was started here is of; None for CuPy."""
        return self._device

    def start(
        self,
        path: str | None = None,
        *,
        device: "SimulatedGPU | None" = None,
        allocator: AllocatorMode = "caching",
        streams: bool = True,
        stacks: bool = True,
    ) -> Recorder:
        """Start a recorder and return it; the arguments are those of `gpuviz.record`.

        Raises:
            RecorderError: One is active already.
        """
        if Recorder.active() is not None:
            raise RecorderError("A recording is already in progress: `%gpuviz stop` first")

        def begin(path: str | None) -> Recorder:
            recorder = record(
                path, device=device, allocator=allocator, streams=streams, stacks=stacks
            )
            recorder.start()
            return recorder

        self._own = self._latest = begin(path)
        self._device = device
        self._again = lambda: begin(None)
        return self._latest

    def stop(self) -> "Recording":
        """Stop the active recorder, whoever started it, and return its recording.

        Raises:
            RecorderError: None is active.
        """
        recorder = self.recorder
        if recorder is None or not recorder.is_recording:
            raise RecorderError("No recording is in progress: `%gpuviz start` first")
        return recorder.stop()

    def add_view(self, view: View, cell: str) -> None:
        """Keep track of what a cell has shown; what it had shown when it ran before is closed.

        What another cell shows, too, stays, and so does what the cell shows again.

        Args:
            view: What is shown.
            cell: Names the cell; empty if it is not known.
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
        """Close what is shown, stop the recorder that was started here, and forget it."""
        views, self._views = self._views, []
        for _, view in views:
            _close(view)
        if self._own is not None and self._own.is_recording:
            self._own.stop()
        self._own = self._latest = self._again = self._device = None

    def check_records(self, device: "SimulatedGPU") -> None:
        """Check that what was started here, if it records, records this device.

        Raises:
            RecorderError: It records another one, and would miss what happens on this one.
        """
        if self._own is not None and self._own.is_recording and self._device is not device:
            raise RecorderError("A recording of another GPU is in progress: `%gpuviz stop` first")

    def start_again(self) -> Recorder:
        """Start a recorder of what was recorded last, in memory; of CuPy if nothing was.

        Raises:
            RecorderError: One is active already.
        """
        if self._again is None:
            return self.start()
        if Recorder.active() is not None:
            raise RecorderError("A recording is already in progress: `%gpuviz stop` first")
        self._own = self._latest = self._again()
        return self._own

    def clear(self) -> None:
        """Forget what was recorded; if it records, go on with a new recording in memory.

        Raises:
            RecorderError: What records was started by the program itself.
        """
        active = Recorder.active()
        if active is None:
            self._latest = None
            return
        if self._again is None or active is not self._own:
            raise RecorderError(
                "The program itself has started this recorder: stop it there, or `%gpuviz stop`",
            )
        active.stop()
        self._own = self._latest = None
        self._own = self._latest = self._again()

    def save(self, path: str, *, force: bool = False) -> Path:
        """Write what was recorded until now as a ``.gpuviz`` file, and return its path."""
        return self.recording.save(path, overwrite=force)

    def report(self, path: str, *, force: bool = False, redact: bool = False) -> Path:
        """Write what was recorded until now as an HTML page, and return its path."""
        return self.recording.report(path, overwrite=force, redact=redact)


def _close(view: "weakref.ref[View]") -> None:
    alive = view()
    if alive is not None:
        alive.close()
