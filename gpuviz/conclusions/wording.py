"""Conclusions as sentences, and what could not be looked at."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from gpuviz.advice.replay.compensation import RecordingCost
from gpuviz.advice.rule import LEAST_BYTES, LEAST_SHARE
from gpuviz.advice.scale import is_bound
from gpuviz.analysis.steady_state import WARM_UP, SteadyState
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_bytes, format_duration, format_share

if TYPE_CHECKING:
    from gpuviz.advice.finding import Finding

_NOTHING_FOUND = "Nothing was found that would save 1 % of the peak (and 8 MiB) or of the time."
# Of the window; what is less of it need not be said.
_LEAST_LEFT_OUT = 0.01
# Of a saving of memory and time: bytes and a share of the time that say nothing beside the other.
_TINY_BYTES, _TINY_SHARE = 1 << 20, 0.001
# Of a duration; what is less uncertain is given as one number.
_LEAST_RANGE = 0.05
# Savings of time and of memory are added up apart, each from the largest on; the list mixes both.
_LARGER = "those that save more"


def saving(finding: "Finding") -> str:
    """Return what a finding saves: bytes of the peak, reserved memory, time, or several of these.

    The larger part of what it is a part of comes first; of memory and time, the one that is next to
    nothing beside the other is left out. What is left of a saving after larger ones is given if it
    differs, and also if the change alone saves next to nothing, as where the peak is as high
    elsewhere.
    """
    parts = []
    share = _share_of_time(finding)
    is_tiny = finding.saved_bytes < _TINY_BYTES and share >= LEAST_SHARE
    if finding.saved_bytes and not is_tiny:
        size = f"{format_bytes(finding.saved_bytes)} of the peak"
        parts.append(size + _after_others(finding.saved_bytes, finding.further_bytes, format_bytes))
    if finding.saved_reserved_bytes:
        parts.append(f"{format_bytes(finding.saved_reserved_bytes)} of reserved memory")
    is_short = 0 < share < _TINY_SHARE and finding.saved_bytes >= _TINY_BYTES
    if finding.saved_ns and not is_short:
        about = "" if finding.certainty == "certain" else "about "
        time = f"{about}{format_duration(finding.saved_ns)}{_share(finding)}"
        which = "the others" if is_bound(finding) else _LARGER
        left = _after_others(finding.saved_ns, finding.further_ns, format_duration, which)
        parts.insert(0 if is_mostly_time(finding) else len(parts), time + left)
    is_not_said = is_tiny or not finding.saved_bytes
    if parts and is_not_said and finding.further_bytes >= LEAST_BYTES:
        size = format_bytes(finding.further_bytes)
        parts.append(f"{size} of the peak once {_LARGER} are followed")
    first, *others = parts or [""]
    return (", and " if "," in first else " and ").join([first, *others])


def _share_of_time(finding: "Finding") -> float:
    return finding.saved_ns / finding.working_ns if finding.working_ns else 0.0


def _share(finding: "Finding") -> str:
    if not finding.working_ns:
        return ""
    return f", {format_share(min(_share_of_time(finding), 1))} of the time"


def _after_others(
    alone: int, further: int, text: Callable[[int], str], which: str = _LARGER
) -> str:
    if text(alone) == text(further):
        return ""
    if further > alone:
        return f" ({text(further)} once {which} are followed)"
    return f" (after {which}: {text(further) if further > 0 else 'nothing'})"


def left_out(state: SteadyState) -> str:
    """Return what a steady state leaves out, by cause; empty if that is next to nothing."""
    if state.left_out_ns < _LEAST_LEFT_OUT * state.window_ns:
        return ""
    causes = [
        f"{format_duration(time)} {cause}"
        for cause, time in zip(WARM_UP, state.warm_up_ns, strict=True)
        if time >= _LEAST_LEFT_OUT * state.left_out_ns
    ]
    if state.warm_up_work_ns >= _LEAST_LEFT_OUT * state.left_out_ns:
        work = format_duration(state.warm_up_work_ns)
        causes.append(f"{work} of GPU work before the first iteration")
    length = state.warm_up_work_ns + sum(state.warm_up_ns)
    warm_up = f"{format_duration(length)} of warm-up ({', '.join(causes)})"
    between = f"{format_duration(state.between_cells_ns)} between cells"
    parts = [warm_up] if causes else []
    parts += [between] if state.between_cells_ns else []
    return f"without {' and '.join(parts)}"


def what_recording_cost(cost: RecordingCost) -> str:
    """Return how long a program took as recorded, and as if it had not been; and the difference."""
    return (
        f"{format_duration(cost.recorded_ns)} recorded, {about(cost)} as if not recorded; "
        f"on the program's threads gpuviz took {format_duration(cost.own_ns)} and CUPTI about "
        f"{format_duration(cost.tracing_ns)}"
    )


def about(cost: RecordingCost) -> str:
    """Return how long a program took as if it had not been recorded, as a range if it is wide."""
    if cost.most_ns - cost.least_ns < _LEAST_RANGE * cost.compensated_ns:
        return f"about {format_duration(cost.compensated_ns)}"
    return f"{format_duration(cost.least_ns)} to {format_duration(cost.most_ns)}"


def short_saving(finding: "Finding") -> str:
    """Return what a finding saves in a word or two: bytes of the peak or reserved, else time.

    Of both it is the larger part of what it is a part of. Bytes for which the finding would not be
    shown come after time for which it is.
    """
    size = finding.saved_bytes or finding.saved_reserved_bytes
    time = format_duration(finding.saved_ns) if finding.saved_ns else ""
    return time if not size or is_mostly_time(finding) else format_bytes(size)


def is_mostly_time(finding: "Finding") -> bool:
    """Return whether a finding saves a larger part of the time than of the peak."""
    size = finding.saved_bytes or finding.saved_reserved_bytes
    share = _share_of_time(finding)
    is_larger = finding.peak_bytes > 0 and share > size / finding.peak_bytes
    return share >= LEAST_SHARE and (is_larger or size < LEAST_BYTES)


def nothing_found(found: "Iterable[Finding]") -> str:
    """Return that nothing was found, if there are at most facts that are no faults; else empty."""
    return "" if any(each.kind != "fact" for each in found) else _NOTHING_FOUND


def sentences(finding: "Finding") -> tuple[str, ...]:
    """Return what explains a finding, below its title: the saving, the reason, the change."""
    saved = saving(finding)
    parts = (f"Saves {saved}." if saved else "", finding.reason, finding.change)
    return tuple(filter(None, parts))


def unknown(recording: RecordingData) -> tuple[str, ...]:
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
