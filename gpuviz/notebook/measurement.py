"""The measurement of one cell, from its first line to its end."""

from typing import TYPE_CHECKING, Any

from gpuviz.notebook.cell_result import CellResult, cell_result
from gpuviz.notebook.holders import Holders
from gpuviz.notebook.static import as_html, as_text
from gpuviz.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from gpuviz.notebook.control import Control
    from gpuviz.recording import Recording


class ShownResult:
    """What stands under a measured cell: HTML, and text where that cannot be shown."""

    def __init__(self, result: CellResult, written: "Sequence[Path]") -> None:
        self._result = result
        self._written = written

    def __repr__(self) -> str:
        return "\n".join([as_text(self._result), *(f"  wrote {path}" for path in self._written)])

    def _repr_html_(self) -> str:
        return as_html(self._result, self._written)


class Measurement:
    """Records from now until `end`, or reads the window in what is recorded anyway.

    Args:
        control: Where to start a recorder, if none is active.
        namespace: The notebook's names.
        options: As for `Control.start`.
    """

    def __init__(self, control: "Control", namespace: "Mapping[str, Any]", **options: Any) -> None:
        active = Recorder.active()
        self._namespace = namespace
        self._is_own = active is None
        self._recorder = control.start(**options) if active is None else active
        self._start = 0 if active is None else active.elapsed_ns
        self._recording: Recording | None = None

    def end(self) -> "Recording":
        """Return what was recorded since the beginning."""
        if self._is_own:
            if self._recorder.is_recording:
                self._recorder.stop()
            self._recording = self._recorder.recording
            return self._recording
        end = self._recorder.elapsed_ns
        self._recording = self._recorder.recording.window(self._start, end)
        return self._recording

    def shown(self, written: "Sequence[Path]") -> ShownResult:
        """Return what to show of it, after `end`."""
        recording = self.end() if self._recording is None else self._recording
        result = cell_result(
            recording,
            (self._start, recording.duration_ns),
            streams=self._recorder.status().streams,
            holders=Holders(self._namespace),
        )
        return ShownResult(result, written)
