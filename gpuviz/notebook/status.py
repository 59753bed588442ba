"""Status of a recorder as text."""

from typing import TYPE_CHECKING

from gpuviz.quantities import format_bytes, format_count, format_duration

if TYPE_CHECKING:
    from gpuviz.recorder.recorder import Recorder
    from gpuviz.recording.recording import Recording


def status_text(recorder: "Recorder | None") -> str:
    """Return what a recorder has recorded, lost and cost, a line each."""
    if recorder is None:
        return "gpuviz has recorded nothing yet."
    status = recorder.status()
    state = "records" if status.recording else "has stopped"
    lines = [
        f"gpuviz {state}, after {format_duration(recorder.elapsed_ns)}",
        f"memory events   {format_count(status.events)}",
        f"GPU activities  {format_count(status.activities) if status.streams else 'not recorded'}",
        f"in memory       {format_bytes(status.bytes_in_memory)}",
        f"on disk         {format_bytes(status.bytes_on_disk)}",
        f"own cost        {format_duration(status.own_cost_ns)}",
    ]
    lost = status.dropped + status.dropped_activities
    if lost:
        lines.append(f"lost            {format_count(lost)}")
    if status.dropped_oldest:
        lines.append(f"oldest dropped  {format_count(status.dropped_oldest)}")
    return "\n".join([*lines, *(f"note: {note}" for note in status.notes)])


def stopped_text(recording: "Recording") -> str:
    """Return in a line what a recording has, and what to do with it."""
    events = recording.table("memory_events").num_rows - recording.manifest.initial_events
    activities = recording.table("activities").num_rows
    text = (
        f"Recorded {format_duration(recording.duration_ns)}: {format_count(events)} memory events, "
        f"{format_count(activities)} GPU activities. `%gpuviz report FILE` shows them."
    )
    return "\n".join([text, *recording.notes])
