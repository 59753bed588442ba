"""Memory outside the recorded allocators as HTML."""

from typing import TYPE_CHECKING, Any

from gpuviz.analysis.other_memory import other_memory
from gpuviz.analysis.processes import part_of_device
from gpuviz.present.markup import html, panel, table
from gpuviz.quantities import format_bytes, format_count

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_HEADINGS = ("Library", "Allocations", "Peak", "At the end")
UNKNOWN = "a library without a name"


def other_memory_section(recording: "Recording", device: int) -> str:
    """Return the section about a device's memory outside the allocators; empty if unknown."""
    own = part_of_device(recording, device)
    rows = [row for row in other_memory(own).to_pylist() if row["device"] == device]
    samples = _samples(recording, device)
    if not (rows or samples):
        return ""
    body = html("<p>{}</p>", _sentence(samples)) if samples else html("")
    if rows:
        cells = (
            (
                row["library"] or UNKNOWN,
                format_count(row["allocations"]),
                format_bytes(row["peak"]),
                format_bytes(row["current"]),
            )
            for row in rows
        )
        body += table("Memory that libraries allocated from CUDA", _HEADINGS, cells)
    return panel("Other memory", body, slug="other-memory", count=len(rows))


def _samples(recording: "Recording", device: int) -> list[dict[str, Any]]:
    own = part_of_device(recording, device)
    samples: list[dict[str, Any]] = other_memory(own, "time").to_pylist()
    return [row for row in samples if row["device"] == device]


def _sentence(samples: list[dict[str, Any]]) -> str:
    last = samples[-1]
    parts = [
        f"{format_bytes(last[name])} {what}"
        for name, what in (
            ("recorded", "by the recorded allocators"),
            ("libraries", "allocated from CUDA by libraries"),
            ("rest", "by CUDA contexts, other processes and what was there before"),
        )
    ]
    return f"At the last sample {format_bytes(last['used'])} were in use: {', '.join(parts)}."
