"""Work on the legacy default stream, in the report of a recording that forbids it."""

from typing import TYPE_CHECKING

from gpuviz.present.section import Section, hint, of_count, of_line, of_time, table, text

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_MOST_ROWS = 200
_HEADINGS = ("Line", "Work", "Calls", "Time on the GPU")
_HINT = (
    "Launches, copies and memsets on the legacy default stream wait for the earlier work of all "
    "blocking streams, whose later work waits for them."
)
_NONE = "Nothing ran on the legacy default stream."


def default_stream_section(recording: "Recording", device: int) -> Section | None:
    """Return the section about a device's default stream; None if it was not asked for."""
    if not recording.manifest.forbid_default_stream:
        return None
    rows = [row for row in recording.default_stream_work().to_pylist() if row["device"] == device]
    cells = (
        (
            of_line(row["source"], row["site"]),
            row["kind"],
            of_count(row["count"]),
            of_time(row["total_ns"]),
        )
        for row in rows[:_MOST_ROWS]
    )
    shown = table("Work on the default stream", _HEADINGS, cells) if rows else text(_NONE)
    return Section("default-stream", "Default stream", (shown, hint(_HINT)), len(rows))
