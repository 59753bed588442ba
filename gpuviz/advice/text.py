"""Findings as sentences."""

from typing import TYPE_CHECKING

from gpuviz.advice.dominant import dominant
from gpuviz.advice.finding_text import NOTHING_FOUND, numbered
from gpuviz.analysis.preparation import PREPARATIONS
from gpuviz.quantities import format_bytes, format_counted, format_duration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpuviz.advice.finding import Finding
    from gpuviz.analysis.steady_state import SteadyState
    from gpuviz.data.recording_data import RecordingData

MOST_SHOWN = 5
# Of the window; what is less of it need not be said.
_LEAST_LEFT_OUT = 0.01


def left_out(state: "SteadyState") -> str:
    """Return what a steady state leaves out, by cause; empty if that is next to nothing."""
    if state.left_out_ns < _LEAST_LEFT_OUT * state.window_ns:
        return ""
    causes = [
        f"{format_duration(time)} {cause}"
        for cause, time in zip(PREPARATIONS, state.warm_up_ns, strict=True)
        if time >= _LEAST_LEFT_OUT * state.left_out_ns
    ]
    warm_up = f"{format_duration(sum(state.warm_up_ns))} of warm-up ({', '.join(causes)})"
    between = f"{format_duration(state.between_cells_ns)} between cells"
    parts = [warm_up] if causes else []
    parts += [between] if state.between_cells_ns else []
    return f"without {' and '.join(parts)}"


def short_saving(finding: "Finding") -> str:
    """Return what a finding saves in a word or two: bytes of the peak or reserved, else time."""
    if size := finding.saved_bytes or finding.saved_reserved_bytes:
        return format_bytes(size)
    return format_duration(finding.saved_ns) if finding.saved_ns else ""


def findings_text(recording: "RecordingData", found: "Sequence[Finding]", most: int | None) -> str:
    """Return what dominates, findings as text, most saving first, and what is not looked at.

    Args:
        recording: The recording.
        found: Its findings.
        most: The number of findings shown; all if None.
    """
    shown = found[:most]
    parts = [f"{fact.text} ({fact.line.site})" for fact in dominant(recording)]
    parts += [""] if parts else []
    parts += [f"{text}\n" for text in numbered(shown)]
    if not found:
        parts.append(NOTHING_FOUND)
    if len(shown) < len(found):
        parts.append(f"{format_counted(len(found) - len(shown), 'more finding')}: --all")
    return "\n".join([*parts, *unknown(recording)])


def unknown(recording: "RecordingData") -> tuple[str, ...]:
    """Return sentences on what could not be looked at in a recording, and why."""
    tables = recording.tables
    sentences = []
    if not tables["memory_events"].num_rows:
        sentences.append("No memory was recorded, so nothing is said about it.")
    if not tables["activities"].num_rows:
        sentences.append(
            "No kernels and copies were recorded, so nothing is said about time, nor about arrays "
            "that are not used."
        )
    elif not tables["launch_blocks"].num_rows:
        sentences.append(
            "It was not recorded which kernels use which arrays, so nothing is said about arrays "
            "that are not used, nor about streams that wait for others without need."
        )
    if recording.dropped:
        sentences.append("Events are missing, so nothing is said about arrays.")
    return tuple(sentences)
