"""Places of the program between whose CUDA calls the GPU is idle, without samples of the host."""

from typing import Any

import numpy as np

from gpuviz.advice.evidence import Line
from gpuviz.advice.host.host_gaps import HostGaps
from gpuviz.advice.host.host_places import HostPlace
from gpuviz.advice.host.rare_gaps import are_frequent, without_first
from gpuviz.advice.host.staging import is_staging
from gpuviz.advice.host_lines import between, line_of
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS


def places_between_calls(recording: RecordingData, gaps: HostGaps) -> list[HostPlace]:
    """Return the places where the host computes: the lines before and after a gap that differ.

    Args:
        recording: The recording.
        gaps: The time between its calls, of which the long ones count that are not rare.
    """
    calls = np.flatnonzero(gaps.is_long & (gaps.idle > 0) & are_frequent(recording, gaps))
    pairs = _longest_parts(recording, gaps, calls)
    found: dict[Any, list[int]] = {}
    lines: dict[Any, tuple[tuple[Line | Frame, Line | Frame], tuple[int, int]]] = {}
    distinct, numbers = np.unique(pairs, axis=0, return_inverse=True)
    order = np.argsort(numbers.ravel(), kind="stable")
    bounds = np.searchsorted(numbers.ravel()[order], np.arange(len(distinct) + 1))
    for number, (before, after) in enumerate(distinct.tolist()):
        two = between(recording, before, after) or (
            line_of(recording, before, ""),
            line_of(recording, after, ""),
        )
        key = two[0].site, two[1].site
        lines.setdefault(key, (two, (before, after)))
        found.setdefault(key, []).extend(calls[order[bounds[number] : bounds[number + 1]]].tolist())
    places = []
    for key, of_place in found.items():
        all_rows = np.sort(np.array(of_place))
        rows, _ = without_first(all_rows, gaps.idle[all_rows])
        (first, last), stacks_of_place = lines[key]
        places.append(
            HostPlace(
                first,
                last,
                stacks_of_place,
                rows,
                idle_ns=int(gaps.idle[rows].sum()),
                host_ns=gaps.length[rows],
                is_upload=is_staging(
                    recording, stacks_of_place, rows, gaps.length[rows], is_native=False
                ),
            )
        )
    return places


def _longest_parts(recording: RecordingData, gaps: HostGaps, calls: np.ndarray) -> np.ndarray:
    """Return the call stacks before and after the longest part of each gap.

    Allocations of the thread divide a gap; a free may be of a function that has returned.
    """
    table, events = recording.tables["api_calls"], recording.tables["memory_events"]
    stacks, threads = plain(table["stack"]), plain(table["thread"])
    end = plain(table["time"])[calls]
    begin = end - gaps.length[calls]
    pairs = np.stack([stacks[gaps.previous[calls]], stacks[calls]], axis=1)
    is_allocation = codes(events["action"], ACTIONS) == ACTIONS.index("alloc")
    times, of_thread, known = (plain(events[name]) for name in ("time", "thread", "stack"))
    for thread in np.unique(threads[calls]).tolist():
        of_gaps = np.flatnonzero(threads[calls] == thread)
        rows = np.flatnonzero(is_allocation & (of_thread == thread) & (known != 0))
        rows = rows[np.argsort(times[rows], kind="stable")]
        low = np.searchsorted(times[rows], begin[of_gaps])
        high = np.searchsorted(times[rows], end[of_gaps])
        for gap, first, last in zip(
            of_gaps[low < high], low[low < high], high[low < high], strict=True
        ):
            inside = rows[first:last]
            edges = np.concatenate([[begin[gap]], times[inside], [end[gap]]])
            sites = np.concatenate([pairs[gap, :1], known[inside], pairs[gap, 1:]])
            longest = int(np.argmax(np.diff(edges)))
            pairs[gap] = sites[longest : longest + 2]
    return pairs
