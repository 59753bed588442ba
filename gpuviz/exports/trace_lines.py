"""Source line of an event, as text in a trace."""

import numpy as np

from gpuviz.data.recording_data import RecordingData
from gpuviz.exports.trace_rows import Texts, mapped


class Lines:
    """Texts such as ``step (run.py:7)`` for call stacks.

    Args:
        recording: The recording, for its call stacks.
        texts: The texts to which the lines are added.
    """

    def __init__(self, recording: RecordingData, texts: Texts) -> None:
        self._stacks = recording.call_stacks
        self._texts = texts

    def of_stacks(self, stacks: np.ndarray) -> np.ndarray:
        """Return the text number of each stack's line in the user's code; -1 if there is none."""
        positions = {}
        for stack in np.unique(stacks).tolist():
            frame = self._stacks.user_frame(stack)
            if frame:
                positions[stack] = self._texts.position(frame.site)
        return mapped(stacks, positions)
