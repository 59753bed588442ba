"""The private pools of captured graphs as HTML."""

from typing import TYPE_CHECKING, Any

from gpuviz.present.markup import html, panel, table
from gpuviz.quantities import format_bytes, format_count

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_TITLES = ("Pool", "Graphs", "Replays", "Reserved at the end", "At most", "In use", "Idle")
_HINT = (
    "Nothing else gets the memory of a graph's pool while the graph exists. What is idle has no "
    "array; replays use it for temporaries. Graphs with one pool must not run at the same time."
)


def graph_pools_section(recording: "Recording", device: int) -> str:
    """Return the section about the pools of a device's graphs; empty if there are none."""
    rows = [row for row in recording.graph_pools().to_pylist() if row["device"] == device]
    if not rows:
        return ""
    body = table("Pools of graphs", _TITLES, map(_cells, rows))
    hint = html('<p class="gpuviz-section__hint">{}</p>', _HINT)
    return panel("Graphs", body + hint, slug="graphs", count=len(rows))


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    idle = max(row["reserved"] - row["allocated"], 0)
    return (
        str(row["pool"]),
        format_count(row["graphs"]),
        "unknown" if row["replays"] is None else format_count(row["replays"]),
        *map(format_bytes, (row["reserved"], row["reserved_peak"], row["allocated"], idle)),
    )
