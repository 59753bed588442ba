"""R48: a rank that comes last to most collectives, while the others wait for it."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from gpuviz.advice.evidence import Evidence, Line
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import longest_lines
from gpuviz.advice.rule import Rule
from gpuviz.analysis.collective_kernels import collective_kernels
from gpuviz.analysis.collectives import UNKNOWN, known_collectives
from gpuviz.analysis.intervals import Intervals
from gpuviz.analysis.launches import calls_of, stacks_of
from gpuviz.analysis.processes import Process, processes
from gpuviz.analysis.steady_state import steady_states
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_count, format_counted, format_duration, format_share

RULES = (
    Rule(
        "R48",
        "a rank that is always late",
        "in a merged recording, the same rank comes last to two thirds of the collectives of a "
        "communicator, and to at least five, not counting the first and those before the "
        "iterations become regular; only by more than the error between the clocks",
        "depends on what its GPU does meanwhile: less work for this rank, or what its host does "
        "before",
    ),
)

# Collectives to which the same rank comes last: at least so many, and this share of all.
_LEAST_COUNT = 5
_LEAST_SHARE = 2 / 3
# Of the time for which it is late: from here on its GPU is busy, and up to here it is idle.
_BUSY = 0.75
_IDLE = 0.25

_WHY = {
    "busy": "Its GPU works on its own kernels and copies for {share} of this time.",
    "idle": "Its GPU is idle for {share} of this time.",
    "both": "Its GPU is busy for {busy} of this time.",
}
_CHANGE = {
    "busy": "Give this rank less work before the collectives, or make that work as fast as that of "
    "the other ranks.",
    "idle": "Look at what the host of this rank does before it launches the collectives; the other "
    "ranks are there earlier.",
    "both": "Compare what this rank does before the collectives with the other ranks.",
}


def find(recording: RecordingData) -> Iterator[Finding]:
    """Find ranks of a merged recording that come last to most collectives of a communicator.

    Trigger: of the collectives whose ranks were all recorded, with the start of each kernel, and
    not counting the first of each communicator, to which the ranks come from their starts, and
    those before the iterations of all ranks are regular, for which code is loaded and compiled, the
    same rank is last in two thirds and in at least five. A rank is last only if it is later than
    all others by more than the error between the clocks.

    Saving: how much later it came than the rank before it, in all of these. It is an upper bound:
    where collectives run while the ranks compute, a late one may delay nothing. ``possible``,
    because the program may divide its work so on purpose.
    """
    by_communicator: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for row in known_collectives(recording).to_pylist():
        if row["clock"] == "gpu" and not row["missing"] and row["ranks"] > 1:
            by_communicator[row["communicator"]].append(row)
    by_name = {each.name: each for each in processes(recording)}
    regular_ns = max((each.from_ns for each in steady_states(recording)), default=0)
    for rows in by_communicator.values():
        known = [row for row in rows[1:] if row["time"] >= regular_ns]
        by_process: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for row in known:
            if row["last_rank"] != UNKNOWN:
                by_process[row["last_process"]].append(row)
        for name, late in by_process.items():
            enough = max(_LEAST_COUNT, _LEAST_SHARE * len(known))
            if len(late) >= enough and name in by_name:
                yield _finding(by_name[name], late, len(known))


def _finding(
    process: Process[RecordingData], late: Sequence[dict[str, Any]], count: int
) -> Finding:
    rank = late[0]["last_rank"]
    arrival = np.array([_start(row, rank) for row in late])
    late_ns = np.array([row["late_ns"] for row in late])
    saved_ns = int(late_ns.sum())
    waited_ns = sum(row["waited_ns"] for row in late)
    busy = _busy(process.recording, arrival - late_ns, arrival) / max(saved_ns, 1)
    why = "busy" if busy >= _BUSY else "idle" if busy <= _IDLE else "both"
    share = format_share(1 - busy if why == "idle" else busy)
    longest = late[int(np.argmax(late_ns))]
    others = late[0]["ranks"] - 1
    waiting = "The other rank" if others == 1 else f"The other {format_count(others)} ranks"
    together = "" if others == 1 else ", all together"
    name = "" if process.name == f"rank {rank}" else f" ({process.name})"
    return Finding(
        rule="R48",
        title=(
            f"Rank {rank}{name} comes last to {format_count(len(late))} of "
            f"{format_counted(count, 'collective')}, {format_duration(saved_ns)} after the rank "
            "before it in all."
        ),
        reason=(
            f"{waiting} waited {format_duration(waited_ns)} for it{together}. "
            f"{_WHY[why].format(share=share, busy=share)}"
        ),
        change=_CHANGE[why],
        certainty="possible",
        device=min(process.devices, default=0),
        saved_ns=saved_ns,
        further_ns=saved_ns,
        lines=_lines(process.recording, arrival, late_ns),
        evidence=Evidence("activities", (), (longest["time"], _start(longest, rank) + 1)),
    )


def _start(row: dict[str, Any], rank: int) -> int:
    start: int = row["starts"][row["recorded"].index(rank)]
    return start


def _busy(own: RecordingData, begin: np.ndarray, end: np.ndarray) -> int:
    """Return for how long a process's GPU worked in intervals of time, without its collectives."""
    activities = own.tables["activities"]
    kernels = collective_kernels(own.tables)
    works = np.ones(activities.num_rows, bool)
    works[kernels[kernels >= 0]] = False
    begins, ends = (plain(activities[name])[works] for name in ("time", "end"))
    return int(Intervals(begins, np.maximum(begins, ends)).within(begin, end).sum())


def _lines(own: RecordingData, arrival: np.ndarray, late_ns: np.ndarray) -> tuple[Line, ...]:
    """Return the lines that launched the collectives."""
    activities = own.tables["activities"]
    kernels = collective_kernels(own.tables)
    kernels = kernels[kernels >= 0]
    starts = plain(activities["time"])[kernels]
    order = np.argsort(starts, kind="stable")
    place = np.minimum(np.searchsorted(starts[order], arrival), max(len(order) - 1, 0))
    found = kernels[order[place]]
    calls = calls_of(own.tables, plain(activities["correlation"])[found])
    return longest_lines(own, stacks_of(own.tables, calls), late_ns)
