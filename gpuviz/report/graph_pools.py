"""The private pools of captured graphs as HTML."""

from typing import TYPE_CHECKING

from gpuviz.quantities import format_bytes, format_count
from gpuviz.report.markup import panel, table

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_TITLES = ("Pool", "Graphs", "Replays", "Reserved at the end", "At most", "In use", "Idle")
_HEAD = "".join(f'<th scope="col">{title}</th>' for title in _TITLES)
_HINT = (
    "Nothing else gets the memory of a graph's pool while the graph exists. What is idle has no "
    "array; replays use it for temporaries. Graphs with one pool must not run at the same time."
)


def graph_pools_section(recording: "Recording", device: int) -> str:
    """Return the section about the pools of a device's graphs; empty if there are none."""
    rows = [row for row in recording.graph_pools().to_pylist() if row["device"] == device]
    if not rows:
        return ""
    shown = "\n".join(
        f"<tr><td>{row['pool']}</td><td>{format_count(row['graphs'])}</td>"
        f"<td>{'unknown' if row['replays'] is None else format_count(row['replays'])}</td>"
        + "".join(
            f"<td>{format_bytes(size)}</td>"
            for size in (
                row["reserved"],
                row["reserved_peak"],
                row["allocated"],
                max(row["reserved"] - row["allocated"], 0),
            )
        )
        + "</tr>"
        for row in rows
    )
    body = table("Pools of graphs", _HEAD, shown)
    hint = f'<p class="gpuviz-section__hint">{_HINT}</p>'
    return panel("Graphs", body + hint, slug="graphs", count=len(rows))
