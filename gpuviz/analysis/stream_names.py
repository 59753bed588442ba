"""What a reader calls the streams of a recording."""

from gpuviz.analysis.derived_tables import derived
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData


@Once
def stream_names(recording: RecordingData) -> dict[int, str]:
    """Return the names of the table ``names`` by the ids of streams."""
    rows = derived(recording)["names"].to_pylist()
    return {row["id"]: row["name"] for row in rows if row["of"] == "stream"}
