"""Measurement of one cell from its first line to its end."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from gpuviz.notebook.cell_markup import as_html, as_text
from gpuviz.notebook.cell_result import CellResult, cell_result
from gpuviz.notebook.control import Control
from gpuviz.notebook.facts import Fact
from gpuviz.notebook.requested_checks import default_stream_fact, hazards_fact
from gpuviz.ownership.array_names import ArrayNames
from gpuviz.recorder.recorder import Recorder
from gpuviz.recording import Recording
from gpuviz.terminal import printable


class ShownResult:
    """The output under a measured cell: HTML, with text as a fallback."""

    def __init__(self, result: CellResult, written: Sequence[Path]) -> None:
        self._result = result
        self._written = written

    def __repr__(self) -> str:
        written = (f"  wrote {path}" for path in self._written)
        return printable("\n".join([as_text(self._result), *written]))

    def _repr_html_(self) -> str:
        return str(as_html(self._result, self._written))


class Measurement:
    """Records from now until `end`, or uses the recording in progress.

    Args:
        control: Starts a recorder if none is active.
        namespace: The notebook's variables.
        options: As for `Control.start`.

    Raises:
        RecorderError: The active recorder records another simulated GPU.
    """

    def __init__(self, control: Control, namespace: Mapping[str, Any], **options: Any) -> None:
        active = Recorder.active()
        self._namespace = namespace
        self._is_own = active is None
        self._options = options
        self._asked: list[Fact] = []
        if options["device"] is not None:
            control.check_records(options["device"])
        self._recorder = control.start(**options) if active is None else active
        # The start of the recorder is not part of the cell.
        self._start = self._recorder.elapsed_ns

    @property
    def is_recording(self) -> bool:
        """Whether the recorder goes on."""
        return self._recorder.is_recording

    def end(self) -> tuple[Recording, int]:
        """Return the recording since the start of the cell, and the end of the cell in ns."""
        end = self._recorder.elapsed_ns
        if self._is_own and self._recorder.is_recording:
            self._recorder.stop()
        whole = self._recorder.recording
        recording = whole if self._is_own else whole.window(self._start, end)
        if self._options["hazards"]:
            self._asked.append(hazards_fact(recording))
        if self._options["forbid_default_stream"]:
            self._asked.append(default_stream_fact(recording))
        return recording, max(end, _last_end(recording)) if self._is_own else end

    def shown(self, recording: Recording, end: int, written: Sequence[Path]) -> ShownResult:
        """Return the output for what `end` returned."""
        result = cell_result(
            recording,
            (self._start, end),
            streams=self._recorder.status().streams,
            names=ArrayNames(self._namespace, getattr(sys, "last_value", None)),
        )
        return ShownResult(replace(result, asked=tuple(self._asked)), written)


def _last_end(recording: Recording) -> int:
    """Return the end of the cell's last GPU activity in ns; 0 without any."""
    import pyarrow.compute as pc

    return int(pc.max(recording.table("activities")["end"]).as_py() or 0)
