"""A finished recording with the interface of a recorder."""

from typing import TYPE_CHECKING

from gpuviz.recorder.status import RecorderStatus

if TYPE_CHECKING:
    from gpuviz.recording.recording import Recording


class Finished:
    """What a dashboard asks of a recorder, answered by a recording.

    Attributes:
        recording: The recording.
        is_recording: False.
    """

    is_recording = False

    def __init__(self, recording: "Recording") -> None:
        self.recording = recording

    def status(self) -> RecorderStatus:
        """Return what the recording tells of how it was made."""
        manifest = self.recording.manifest
        activities = self.recording.table("activities").num_rows
        return RecorderStatus(
            recording=False,
            streams=activities > 0,
            events=manifest.events,
            activities=activities,
            dropped=manifest.dropped,
            dropped_activities=manifest.dropped_activities,
            dropped_oldest=manifest.dropped_oldest,
            bytes_in_memory=sum(table.nbytes for table in self.recording.tables.values()),
            bytes_on_disk=0,
            own_cost_ns=manifest.own_cost_ns,
            notes=manifest.notes,
        )
