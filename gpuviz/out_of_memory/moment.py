"""Place of a failed request in its recording."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData


@dataclass(frozen=True, slots=True, eq=False)
class Moment:
    """A failed request in its recording.

    Attributes:
        recording: The recording.
        row: The row of the failure in ``memory_events``.
    """

    recording: "RecordingData"
    row: int
