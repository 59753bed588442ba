"""The private pools of captured graphs."""

from typing import TYPE_CHECKING, Any

from gpuviz.present.section import Cell, Section, hint, of_bytes, of_count, table

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_TITLES = ("Pool", "Graphs", "Replays", "Reserved at the end", "At most", "In use", "Idle")
_HINT = (
    "Nothing else gets the memory of a graph's pool while the graph exists. What is idle has no "
    "array; replays use it for temporaries. Graphs with one pool must not run at the same time."
)


def graph_pools_section(recording: "Recording", device: int) -> Section | None:
    """Return the section about the pools of a device's graphs; None if there are none."""
    rows = [row for row in recording.graph_pools().to_pylist() if row["device"] == device]
    if not rows:
        return None
    parts = (table("Pools of graphs", _TITLES, map(_cells, rows)), hint(_HINT))
    return Section("graphs", "Graphs", parts, len(rows))


def _cells(row: dict[str, Any]) -> tuple[Cell, ...]:
    idle = max(row["reserved"] - row["allocated"], 0)
    return (
        Cell(str(row["pool"]), row["pool"]),
        of_count(row["graphs"]),
        Cell("unknown") if row["replays"] is None else of_count(row["replays"]),
        *map(of_bytes, (row["reserved"], row["reserved_peak"], row["allocated"], idle)),
    )
