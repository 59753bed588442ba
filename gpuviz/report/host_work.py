"""What the host did while a GPU was idle because of it."""

from typing import TYPE_CHECKING, Any

from gpuviz.analysis.host_work import is_sampled
from gpuviz.present.section import (
    Cell,
    Section,
    hint,
    of_count,
    of_share,
    of_time,
    table,
)

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_TITLES = ("The host", "At", "GPU idle", "Share", "Gaps")
_HINT = (
    "Idle time of the GPU that ended with work of a thread which did this meanwhile; the share is "
    "of all of them. Threads were looked at about once a millisecond."
)
_MOST_ROWS = 50


def host_work_section(recording: "Recording", device: int) -> Section | None:
    """Return the section about the host's work; None unless threads were sampled."""
    rows = recording.host_work(device).to_pylist() if is_sampled(recording) else []
    if not rows:
        return None
    total = max(sum(row["idle_ns"] for row in rows), 1)
    shown = [_cells(row, total) for row in rows[:_MOST_ROWS]]
    parts = (table("What the host did while the GPU was idle", _TITLES, shown), hint(_HINT))
    return Section("host", "Host", parts, len(rows))


def _cells(row: dict[str, Any], total: int) -> tuple[Cell, ...]:
    return (
        Cell(row["text"]),
        Cell(place=row["site"]),
        of_time(row["idle_ns"]),
        of_share(row["idle_ns"] / total),
        of_count(row["count"]),
    )
