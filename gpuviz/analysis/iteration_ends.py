"""When the iterations of a program end, with what the host frees after their last launch."""

import numpy as np

from gpuviz.analysis.grouping import numbered
from gpuviz.analysis.growth import FEWEST
from gpuviz.analysis.launch_sequence import LaunchSequence
from gpuviz.analysis.lifetimes import Lifetimes
from gpuviz.analysis.main_loop import host_spans
from gpuviz.analysis.periods import repeats
from gpuviz.analysis.seen_part import seen_part
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import DICTIONARIES

_ACTIONS = DICTIONARIES["memory_events", "action"]
_KERNELS = [DICTIONARIES["activities", "kind"].index(kind) for kind in ("kernel", "graph")]
# A line that launches fewer kernels may do so in no loop.
_FEWEST_ROUNDS = 10
# Of all launches, those from its first to its last one.
_LEAST_SPANNED = 0.5
# A line with more lines of the program in its period is one of a loop.
_FEWEST_LINES = 2
# Of the iterations, those that free at most as much after their last launch as is usual.
_USUAL = 0.75


def iteration_ends(recording: RecordingData, blocks: Lifetimes, lines: np.ndarray) -> np.ndarray:
    """Return when the iterations end, in ns.

    If only memory was recorded, they are periods in which the same lines allocate.

    Args:
        recording: The recording.
        blocks: Its blocks.
        lines: A number for each block, equal for those of a line.
    """
    starts, ends = host_spans(recording)
    if len(ends) <= FEWEST and not recording.tables["activities"].num_rows:
        return _allocation_periods(recording, blocks, lines)
    return _after_frees(blocks, starts, ends)


def round_ends(recording: RecordingData, blocks: Lifetimes) -> np.ndarray:
    """Return when the rounds of a loop end whose launches have no regular order, in ns.

    Each launch of the line that launches most kernels begins one: of a loop with no other line, or
    with branches. None if a request for memory ended the work: what a program makes before it uses
    all of it has no other order either.

    Args:
        recording: The recording.
        blocks: Its blocks.
    """
    launches = LaunchSequence(seen_part(recording))
    none, lines = np.zeros(0, np.int64), launches.lines()
    kernels = np.flatnonzero(np.isin(launches.kinds, _KERNELS) & (lines != 0))
    if len(kernels) < _FEWEST_ROUNDS:
        return none
    _, first, counts = np.unique(lines[kernels], return_index=True, return_counts=True)
    usual = lines[kernels[first[np.lexsort((first, -counts))[0]]]]
    starts = kernels[lines[kernels] == usual]
    spanned = starts[-1] - starts[0] + 1
    events = recording.tables["memory_events"]
    failed = plain(events["time"])[codes(events["action"], _ACTIONS) == _ACTIONS.index("oom")]
    if (failed > launches.called[-1]).any():
        return none
    if len(starts) < _FEWEST_ROUNDS or spanned < _LEAST_SPANNED * len(lines):
        return none
    last = np.append(starts[1:] - 1, starts[-1])
    return _after_frees(blocks, launches.called[starts], launches.returned[last])


def _after_frees(blocks: Lifetimes, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return when the host has freed what it frees after the last launch of each iteration.

    The next iteration begins with its first allocation, at the latest with its first launch.
    After the last iteration as many frees as usual are its own: others are of what the loop
    has kept, when its function returns.

    Args:
        blocks: The blocks of the recording.
        starts: When the host made the first launch of each iteration, in ns.
        ends: When it returned from the last.
    """
    if not len(ends):
        return ends
    allocated, freed = (
        np.sort(each, kind="stable") for each in (blocks.begin, blocks.end_or_never)
    )
    never = np.iinfo(np.int64).max
    following = np.append(allocated, never)[np.searchsorted(allocated, ends, side="right")]
    marks: np.ndarray = np.maximum(np.minimum(following, np.append(starts[1:], never)) - 1, ends)
    until = np.searchsorted(freed, ends, side="right")
    usual = np.searchsorted(freed, marks[:-1], side="right") - until[:-1]
    own = int(until[-1] + (np.quantile(usual, _USUAL) if len(usual) else 0))
    last = freed[own - 1] if until[-1] < own <= len(freed) else ends[-1]
    marks[-1] = min(max(last, ends[-1]), marks[-1])
    return marks


def _allocation_periods(
    recording: RecordingData, blocks: Lifetimes, lines: np.ndarray
) -> np.ndarray:
    """Return when the periods end in which the same lines allocate."""
    initial = recording.manifest.initial_events
    rows = np.flatnonzero((blocks.alloc >= initial) & (blocks.stack != 0))
    elements = numbered(lines[rows])[0]
    found = repeats(elements.astype(np.int64), fewest=FEWEST)
    if found is None:
        return np.zeros(0, np.int64)
    usual = slice(int(found.starts[found.usual]), int(found.starts[found.usual]) + found.length)
    if len(np.unique(elements[usual])) < _FEWEST_LINES:
        return np.zeros(0, np.int64)
    # A period ends before the first allocation of the next one.
    ends: np.ndarray = blocks.begin[rows[found.starts[1:]]] - 1
    return ends
