"""Number of allocations that succeeded on a retry."""

from typing import TYPE_CHECKING

import numpy as np

from gpuviz.data.columns import codes, plain
from gpuviz.data.tables import ACTIONS

if TYPE_CHECKING:
    from gpuviz.data.recording_data import RecordingData

_OTHER, _RELEASE, _MAKE = range(3)
_RELEASED = ("segment_free", "segment_unmap")
_MADE = ("segment_alloc", "segment_map")


def succeeded_on_retry(recording: "RecordingData", device: int) -> int:
    """Return how many allocations succeeded only after cached segments were released.

    Such an allocation releases segments, requests one, and returns a block of it, without another
    request, free or call of ``empty_cache`` in between. Allocators other than gpuviz's do not
    record that call, so there the three must have the same call stack. Where garbage collection
    also releases segments before a request, the allocator's count of retries is an upper bound.
    """
    manifest = recording.manifest
    events = recording.tables["memory_events"].slice(manifest.initial_events)
    actions = codes(events["action"], ACTIONS)
    # Frees complete at any time; what they release does not matter here.
    kept = (plain(events["device"]) == device) & (actions != ACTIONS.index("free_completed"))
    actions = actions[kept]
    callers = np.stack([plain(events["thread"])[kept], plain(events["stack"])[kept]])
    released, made = (
        np.isin(actions, [*map(ACTIONS.index, names)]) for names in (_RELEASED, _MADE)
    )
    kinds = np.where(released, _RELEASE, np.where(made, _MAKE, _OTHER))
    # One row for each run of releases, and of new segments.
    first = np.append(True, (kinds[1:] != kinds[:-1]) | (kinds[1:] == _OTHER))[: len(kinds)]
    kinds, actions, callers = kinds[first], actions[first], callers[:, first]
    succeeded = (kinds[:-2] == _RELEASE) & (kinds[1:-1] == _MAKE)
    succeeded &= actions[2:] == ACTIONS.index("alloc")
    succeeded &= (callers[:, :-2] == callers[:, 2:]).all(axis=0)
    if manifest.allocator != "caching":
        succeeded &= callers[1, 2:] != 0
    count = int(succeeded.sum())
    retries = manifest.memory_stats.get(device, {}).get("num_alloc_retries")
    if retries is not None and "garbage_collection_threshold" in manifest.settings:
        return min(count, retries)
    return count
