"""What the host did while a GPU was idle because of it, as HTML."""

from typing import TYPE_CHECKING, Any

from gpuviz.analysis.host_work import is_sampled
from gpuviz.present.markup import html, panel, table, with_code
from gpuviz.quantities import format_count, format_duration, format_share

if TYPE_CHECKING:
    from markupsafe import Markup

    from gpuviz.recording import Recording

_TITLES = ("The host", "At", "GPU idle", "Share", "Gaps")
_HINT = (
    "Idle time of the GPU that ended with work of a thread which did this meanwhile; the share is "
    "of all of them. Threads were looked at about once a millisecond."
)
_MOST_ROWS = 50


def host_work_section(recording: "Recording", device: int) -> str:
    """Return the section about the host's work; empty unless threads were sampled."""
    rows = recording.host_work(device).to_pylist() if is_sampled(recording) else []
    if not rows:
        return ""
    total = max(sum(row["idle_ns"] for row in rows), 1)
    shown = [_cells(row, total) for row in rows[:_MOST_ROWS]]
    body = table("What the host did while the GPU was idle", _TITLES, shown)
    hint = html('<p class="gpuviz-section__hint">{}</p>', _HINT)
    return panel("Host", body + hint, slug="host", count=len(rows))


def _cells(row: dict[str, Any], total: int) -> "tuple[str | Markup, ...]":
    return (
        with_code(row["text"]),
        row["site"],
        format_duration(row["idle_ns"]),
        format_share(row["idle_ns"] / total),
        format_count(row["count"]),
    )
