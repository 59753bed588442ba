"""Memory outside the recorded allocators as HTML."""

from html import escape
from typing import TYPE_CHECKING, Any

from gpuviz.quantities import format_bytes, format_count
from gpuviz.report.markup import panel, table

if TYPE_CHECKING:
    from gpuviz.recording.recording import Recording

_HEAD = "".join(
    f'<th scope="col">{title}</th>' for title in ("Library", "Allocations", "Peak", "At the end")
)
UNKNOWN = "a library without a name"


def other_memory_section(recording: "Recording", device: int) -> str:
    """Return the section about a device's memory outside the allocators; empty if unknown."""
    rows = [row for row in recording.other_memory().to_pylist() if row["device"] == device]
    sentence = sample_sentence(recording, device)
    if not (rows or sentence):
        return ""
    shown = "\n".join(
        f"<tr><td>{escape(row['library'] or UNKNOWN)}</td>"
        f"<td>{format_count(row['allocations'])}</td>"
        f"<td>{format_bytes(row['peak'])}</td><td>{format_bytes(row['current'])}</td></tr>"
        for row in rows
    )
    body = f"<p>{escape(sentence)}</p>" if sentence else ""
    if rows:
        body += table("Memory that libraries allocated from CUDA", _HEAD, shown)
    return panel("Other memory", body, slug="other-memory", count=len(rows))


def sample_sentence(recording: "Recording", device: int) -> str:
    """Return how the device's used memory divides at the last sample; empty without one."""
    samples = recording.other_memory(by="time").to_pylist()
    of_device: list[dict[str, Any]] = [row for row in samples if row["device"] == device]
    if not of_device:
        return ""
    last = of_device[-1]
    parts = [
        f"{format_bytes(last[name])} {what}"
        for name, what in (
            ("recorded", "by the recorded allocators"),
            ("libraries", "allocated from CUDA by libraries"),
            ("rest", "by CUDA contexts, other processes and what was there before"),
        )
    ]
    return f"At the last sample {format_bytes(last['used'])} were in use: {', '.join(parts)}."
