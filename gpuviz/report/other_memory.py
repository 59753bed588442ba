"""Memory outside the recorded allocators as HTML."""

from html import escape
from typing import TYPE_CHECKING, Any

from gpuviz.analysis.other_memory import other_memory
from gpuviz.analysis.processes import part_of_device
from gpuviz.quantities import format_bytes, format_count
from gpuviz.report.markup import panel, table

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_HEAD = "".join(
    f'<th scope="col">{title}</th>' for title in ("Library", "Allocations", "Peak", "At the end")
)
UNKNOWN = "a library without a name"
# Samples that the track draws; of more, the largest of as many spans of time.
_MOST_SAMPLES = 1000


def other_memory_section(recording: "Recording", device: int) -> str:
    """Return the section about a device's memory outside the allocators; empty if unknown."""
    own = part_of_device(recording, device)
    rows = [row for row in other_memory(own).to_pylist() if row["device"] == device]
    samples = _samples(recording, device)
    if not (rows or samples):
        return ""
    shown = "\n".join(
        f"<tr><td>{escape(row['library'] or UNKNOWN)}</td>"
        f"<td>{format_count(row['allocations'])}</td>"
        f"<td>{format_bytes(row['peak'])}</td><td>{format_bytes(row['current'])}</td></tr>"
        for row in rows
    )
    body = f"<p>{_sentence(samples)}</p>" if samples else ""
    if rows:
        body += table("Memory that libraries allocated from CUDA", _HEAD, shown)
    return panel("Other memory", body, slug="other-memory", count=len(rows))


def sample_sentence(recording: "Recording", device: int) -> str:
    """Return how the device's used memory divides at the last sample; empty without one."""
    samples = _samples(recording, device)
    return _sentence(samples) if samples else ""


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


def drawn_samples(recording: "Recording", device: int) -> list[list[int]]:
    """Return time, bytes of libraries and the rest of the samples that the page draws."""
    samples = _samples(recording, device)
    # Without libraries it would be a line that never changes.
    own = part_of_device(recording, device)
    is_known = device in other_memory(own)["device"].to_pylist()
    if not is_known or len(samples) < 2:  # noqa: PLR2004
        return []
    step = -(-len(samples) // _MOST_SAMPLES)
    spans = (samples[at : at + step] for at in range(0, len(samples), step))
    chosen = (max(span, key=lambda row: row["libraries"] + row["rest"]) for span in spans)
    return [[row["time"], row["libraries"], row["rest"]] for row in chosen]
