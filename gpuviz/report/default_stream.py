"""Work on the legacy default stream as HTML, in the report of a recording that forbids it."""

from html import escape
from typing import TYPE_CHECKING

from gpuviz.quantities import format_count, format_duration
from gpuviz.report.markup import code_and_site, panel, table

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_MOST_ROWS = 200
_HEAD = "".join(
    f'<th scope="col">{title}</th>' for title in ("Line", "Work", "Calls", "Time on the GPU")
)
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
    shown = "\n".join(
        f"<tr><td>{code_and_site(row['source'], row['site'])}</td><td>{escape(row['kind'])}</td>"
        f"<td>{format_count(row['count'])}</td><td>{format_duration(row['total_ns'])}</td></tr>"
        for row in rows[:_MOST_ROWS]
    )
    body = table("Work on the default stream", _HEAD, shown) if rows else f"<p>{_NONE}</p>"
    hint = f'<p class="gpuviz-section__hint">{_HINT}</p>'
    return panel("Default stream", body + hint, slug="default-stream", count=len(rows))
