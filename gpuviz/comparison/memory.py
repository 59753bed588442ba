"""The peak of memory of two recordings, line by line."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

from gpuviz.analysis.grouping import Groups
from gpuviz.analysis.initial_state import ALLOCATED
from gpuviz.analysis.peak import peak_and_state
from gpuviz.analysis.state import state_at
from gpuviz.comparison.alignment import CodeLine, Pair, line_of
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData

UNKNOWN_LINE = CodeLine(function="(unknown)")


def held_at_peak(recording: RecordingData, device: int) -> tuple[int, Counter[CodeLine]]:
    """Return the bytes allocated at a device's peak, and how they divide into lines exactly."""
    peak, state = peak_and_state(recording, device)
    blocks = (state or state_at(recording, "peak", device)).blocks()
    chosen = (blocks["state"] == ALLOCATED) & (blocks["device"] == device)
    stacks, sizes = blocks["stack"][chosen], blocks["size"][chosen].astype("int64")
    groups = Groups([stacks])
    lines: Counter[CodeLine] = Counter()
    sums = groups.totals(sizes)["sum"].tolist()
    for stack, size in zip(stacks[groups.first_rows].tolist(), sums, strict=True):
        lines[line_of(recording, stack)] += size
    rest = peak.bytes - lines.total()
    if rest:
        lines[UNKNOWN_LINE] += rest
    return peak.bytes, lines


def changes_of_peak(
    pairs: list[Pair], before: Counter[CodeLine], after: Counter[CodeLine]
) -> Iterator[dict[str, Any]]:
    """Yield a row for each line that holds more or less; their changes add up exactly."""
    for pair in pairs:
        held = before[pair.before] if pair.before else 0
        holds = after[pair.after] if pair.after else 0
        if held != holds:
            yield {
                **described(pair),
                "before_bytes": held,
                "after_bytes": holds,
                "change": holds - held,
                "status": _status(pair, holds - held),
            }


def described(pair: Pair) -> dict[str, str]:
    """Return where a line is and was, and its texts; empty where it does not exist."""
    before, after = pair.before, pair.after
    return {
        "before_site": before.site if before else "",
        "site": after.site if after else "",
        "before_source": before.source if before else "",
        "source": after.source if after else "",
    }


def _status(pair: Pair, change: int) -> str:
    if pair.before is None:
        return "new"
    if pair.after is None:
        return "gone"
    if pair.is_edited:
        return "edited"
    return "grown" if change > 0 else "shrunk"


def stacks_in_use(recording: RecordingData) -> list[int]:
    """Return the ids of all call stacks."""
    ids: list[int] = plain(recording.tables["stacks"]["id"]).tolist()
    return ids
