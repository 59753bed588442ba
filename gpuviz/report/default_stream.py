"""Work on the legacy default stream as HTML, in the report of a recording that forbids it."""

from typing import TYPE_CHECKING

from gpuviz.present.markup import code_and_site, html, panel, table
from gpuviz.quantities import format_count, format_duration

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_MOST_ROWS = 200
_HEADINGS = ("Line", "Work", "Calls", "Time on the GPU")
_HINT = (
    "Launches, copies and memsets on the legacy default stream wait for the earlier work of all "
    "blocking streams, whose later work waits for them."
)
_NONE = "Nothing ran on the legacy default stream."


def default_stream_section(recording: "Recording", device: int) -> str:
    """Return the section about a device's default stream; empty if it was not asked for."""
    if not recording.manifest.forbid_default_stream:
        return ""
    rows = [row for row in recording.default_stream_work().to_pylist() if row["device"] == device]
    cells = (
        (
            code_and_site(row["source"], row["site"]),
            row["kind"],
            format_count(row["count"]),
            format_duration(row["total_ns"]),
        )
        for row in rows[:_MOST_ROWS]
    )
    body = (
        table("Work on the default stream", _HEADINGS, cells) if rows else html("<p>{}</p>", _NONE)
    )
    hint = html('<p class="gpuviz-section__hint">{}</p>', _HINT)
    return panel("Default stream", body + hint, slug="default-stream", count=len(rows))
