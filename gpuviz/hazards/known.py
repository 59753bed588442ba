"""The hazards of a recording: those of its file, else judged on first use."""

import pyarrow as pa

from gpuviz.data.conclusions import stored_conclusions
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData
from gpuviz.hazards.hazards import judge

# Activities and CUDA calls; judging more would take a noticeable part of writing a report.
_MOST_JUDGED = 1_000_000
_TOO_LONG = "The recording is very long; `gpuviz hazards` judges it."


@Once
def known_hazards(recording: RecordingData) -> pa.Table | str:
    """Return the table of the hazards, or why they are unknown."""
    stored = stored_conclusions(recording).get("hazards")
    return judge(recording) if stored is None else stored


def affordable_hazards(recording: RecordingData) -> pa.Table | str:
    """Return the table of the hazards, or why they are unknown; none if it would take long."""
    tables = recording.tables
    rows = tables["activities"].num_rows + tables["api_calls"].num_rows
    is_long = rows > _MOST_JUDGED and not recording.manifest.hazards
    is_known = known_hazards.is_known(recording) or "hazards" in stored_conclusions(recording)
    return _TOO_LONG if is_long and not is_known else known_hazards(recording)


def unknown(recording: RecordingData) -> str:
    """Return why the hazards of a recording are unknown; empty if they are known."""
    found = known_hazards(recording)
    return found if isinstance(found, str) else ""
