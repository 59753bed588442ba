"""Number of allocations that succeeded on a retry."""

import re

import numpy as np

from gpuviz.analysis.pools import is_torchs
from gpuviz.analysis.unseen import is_whole
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS

_OTHER, _RELEASE, _MAKE = range(3)
_RELEASED = ("segment_free", "segment_unmap")
_MADE = ("segment_alloc", "segment_map")
# What allocates the memory of segments, and of their pages.
_REQUEST = re.compile(r"cu(MemAlloc|MemCreate|daMalloc)")


def succeeded_on_retry(recording: RecordingData, device: int) -> int:
    """Return how many allocations succeeded only after cached segments were released.

    Such an allocation releases segments, requests one, and returns a block of it, without another
    request, free or call of ``empty_cache`` in between. PyTorch's allocator does not record that
    call, which libraries also make, so there the three must have the same call stack; and before
    the release the driver must have been asked, if all of its calls were recorded. Where garbage
    collection also releases segments before a request, the allocator's count of retries is an upper
    bound.
    """
    manifest = recording.manifest
    events = recording.tables["memory_events"].slice(manifest.initial_events)
    actions = codes(events["action"], ACTIONS)
    # Frees complete at any time; what they release does not matter here.
    kept = (plain(events["device"]) == device) & (actions != ACTIONS.index("free_completed"))
    actions, times = actions[kept], plain(events["time"])[kept]
    callers = np.stack([plain(events["thread"])[kept], plain(events["stack"])[kept]])
    released, made = (
        np.isin(actions, [*map(ACTIONS.index, names)]) for names in (_RELEASED, _MADE)
    )
    kinds = np.where(released, _RELEASE, np.where(made, _MAKE, _OTHER))
    # One row for each run of releases, and of new segments.
    first = np.append(True, (kinds[1:] != kinds[:-1]) | (kinds[1:] == _OTHER))[: len(kinds)]
    before = np.append(0, times)[: len(times)][first]
    kinds, actions, callers, times = kinds[first], actions[first], callers[:, first], times[first]
    succeeded = (kinds[:-2] == _RELEASE) & (kinds[1:-1] == _MAKE)
    succeeded &= actions[2:] == ACTIONS.index("alloc")
    succeeded &= (callers[:, :-2] == callers[:, 2:]).all(axis=0)
    if manifest.allocator != "caching":
        succeeded &= callers[1, 2:] != 0
    of_torch = is_torchs(plain(events["pool"])[kept][first][2:])
    has_calls = recording.tables["api_calls"].num_rows and is_whole(recording.tables)
    if has_calls and not recording.dropped:
        asked = _was_asked(recording, callers[0, :-2], before[:-2], times[:-2])
        succeeded &= asked | ~of_torch
    count = int(succeeded.sum())
    retries = manifest.memory_stats.get(device, {}).get("num_alloc_retries")
    if retries is not None and "garbage_collection_threshold" in manifest.settings:
        return min(count, retries)
    return count


def _was_asked(
    recording: RecordingData,
    threads: np.ndarray,
    begin: np.ndarray,
    end: np.ndarray,
) -> np.ndarray:
    """Return whether a thread asked the driver for memory within each span of time, in ns."""
    calls = recording.tables["api_calls"]
    strings = recording.tables["strings"]
    names = zip(strings["id"].to_pylist(), strings["text"].to_pylist(), strict=True)
    requests = [number for number, name in names if _REQUEST.match(name)]
    rows = np.flatnonzero(np.isin(plain(calls["name"]), requests))
    called, of_thread = plain(calls["time"])[rows], plain(calls["thread"])[rows]
    found = np.zeros(len(begin), bool)
    for thread in np.unique(of_thread).tolist():
        times = np.sort(called[of_thread == thread])
        within = np.searchsorted(times, end) > np.searchsorted(times, begin)
        found |= within & (threads == thread)
    return found
