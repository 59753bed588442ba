"""Whether a recording describes the devices and streams that its memory events name."""

from gpuviz.data.columns import distinct, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.errors import FormatError

# By column of `memory_events`: the table, and what a replay needs of its row.
_NEEDED = {"device": ("devices", "total_memory"), "stream": ("streams", "handle")}


def check_described(recording: RecordingData, *columns: str) -> None:
    """Check that each device or stream of ``memory_events`` has its row.

    Args:
        recording: The recording.
        columns: ``device``, ``stream``.

    Raises:
        FormatError: A row is missing.
    """
    for column in columns:
        table, needed = _NEEDED[column]
        used = distinct(plain(recording.tables["memory_events"][column])).tolist()
        known = set(plain(recording.tables[table]["id"]).tolist())
        if column == "stream":
            known.add(0)
        unknown = [number for number in used if number not in known]
        if unknown:
            problem = (
                f"no row for {column} {unknown[0]}, which has memory events; expected one with its "
                f"{needed}, which a replay needs"
            )
            raise FormatError(recording.path, f"table {table}", problem)
