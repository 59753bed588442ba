"""The library that a program's arrays belong to, which decides what a finding advises."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.data.codes import FRAMEWORKS
from gpuviz.data.columns import codes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuviz.data.recording_data import RecordingData


def is_of(recording: "RecordingData", library: str) -> bool:
    """Return whether most memory events with a known library are of one of `FRAMEWORKS`."""
    counts = np.bincount(
        codes(recording.tables["memory_events"]["framework"], FRAMEWORKS).astype(np.int64),
        minlength=len(FRAMEWORKS),
    )
    return bool(2 * counts[FRAMEWORKS.index(library)] > counts[1:].sum())


def by_library(recording: "RecordingData", texts: "Mapping[str, str]", otherwise: str) -> str:
    """Return the text for the library that a program's arrays belong to, by its name."""
    return next((text for library, text in texts.items() if is_of(recording, library)), otherwise)
