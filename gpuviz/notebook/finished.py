"""A finished recording with the interface of a recorder."""

from functools import cached_property
from typing import TYPE_CHECKING

from gpuviz.analysis.launches import within
from gpuviz.recorder.live_statistics import LiveStatistics, columns_of
from gpuviz.recorder.status import RecorderStatistics, RecorderStatus

if TYPE_CHECKING:
    from gpuviz.recording import Recording


class Finished:
    """The interface of a recorder that a dashboard needs, for a finished recording.

    Attributes:
        recording: The recording.
        is_recording: False.
    """

    is_recording = False

    def __init__(self, recording: "Recording") -> None:
        self.recording = recording

    @cached_property
    def statistics(self) -> RecorderStatistics:
        """The statistics at the end of the recording."""
        live = LiveStatistics()
        initial = self.recording.manifest.initial_events
        events = self.recording.tables["memory_events"]
        live.take("memory_events", columns_of("memory_events", events.slice(0, initial)))
        live.begin()
        live.take("memory_events", columns_of("memory_events", events.slice(initial)))
        activities = self.recording.tables["activities"]
        columns = columns_of("activities", activities)
        if self.recording.bounds is not None:
            time, end = within(activities, self.recording.bounds)
            columns = {**columns, "time": time, "end": end}
        live.take("activities", columns)
        live.take_total(self._last("devices", "id", "total_memory"))
        live.take_used(self._last("device_memory", "device", "used"))
        return live.read(self.recording.duration_ns, self.status())

    def status(self) -> RecorderStatus:
        """Return the final status of the recorder, from the manifest."""
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

    def _last(self, table: str, key: str, value: str) -> dict[int, int]:
        rows = self.recording.tables[table]
        return dict(zip(rows[key].to_pylist(), rows[value].to_pylist(), strict=True))
