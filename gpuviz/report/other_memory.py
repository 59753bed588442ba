"""Memory outside the recorded allocators."""

from typing import TYPE_CHECKING, Any

from gpuviz.analysis.other_memory import other_memory
from gpuviz.analysis.processes import part_of_device
from gpuviz.present.section import Cell, Section, of_bytes, of_count, table, text
from gpuviz.quantities import format_bytes

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_HEADINGS = ("Library", "Allocations", "Peak", "At the end")
UNKNOWN = "a library without a name"


def other_memory_section(recording: "Recording", device: int) -> Section | None:
    """Return the section about a device's memory outside the allocators; None if unknown."""
    own = part_of_device(recording, device)
    rows = [row for row in other_memory(own).to_pylist() if row["device"] == device]
    samples = _samples(recording, device)
    if not (rows or samples):
        return None
    parts = [text(_sentence(samples))] if samples else []
    if rows:
        parts.append(
            table("Memory that libraries allocated from CUDA", _HEADINGS, map(_cells, rows))
        )
    return Section("other-memory", "Other memory", tuple(parts), len(rows))


def _cells(row: dict[str, Any]) -> tuple[Cell, ...]:
    return (
        Cell(row["library"] or UNKNOWN),
        of_count(row["allocations"]),
        of_bytes(row["peak"]),
        of_bytes(row["current"]),
    )


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
