"""The live arrays of a failed request that nothing has used for longest."""

from collections.abc import Iterator

import numpy as np

from gpuviz.analysis.pools import are_of
from gpuviz.analysis.touches import touches
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.out_of_memory.cached_memory import Obstacle, obstacle_of

# Freeing more than this, as a multiple of the request, is another program.
_MOST = 2


def longest_unused(
    recording: RecordingData, row: int, size: int, *, of_torch: bool
) -> Iterator[Obstacle]:
    """Yield sets of live arrays of an allocator, those first that were not used for longest.

    Each set has at least the bytes of the request, and is larger than the one before. None if it is
    unknown what the GPU uses. What was not used yet, or is used after the failure, is left out.

    Args:
        recording: The recording.
        row: The row of the failure in ``memory_events``.
        size: The bytes of the request.
        of_torch: Whether torch's own allocator failed, in a recording of another one beside it.
    """
    used = touches(recording)
    if used is None:
        return
    events, blocks = recording.tables["memory_events"], used.blocks
    device, time = plain(events["device"])[row], plain(events["time"])[row]
    calls = plain(recording.tables["api_calls"]["time"])
    last = np.where(used.used, calls[used.last], time)
    live = (blocks.alloc < row) & (blocks.free > row) & (blocks.device == device)
    live &= (last < time) & are_of(plain(events["pool"])[blocks.alloc], torch=of_torch)
    oldest = np.flatnonzero(live)
    oldest = oldest[np.argsort(last[oldest], kind="stable")]
    sums = np.cumsum(blocks.size[oldest])
    count = int(np.searchsorted(sums, size)) + 1
    while count <= len(oldest) and sums[count - 1] <= _MOST * max(size, int(sums[0])):
        chosen = oldest[:count]
        pools = plain(events["pool"])[blocks.alloc[chosen]]
        yield obstacle_of(
            blocks.stack[chosen].tolist(),
            blocks.address[chosen].tolist(),
            blocks.size[chosen].tolist(),
            tuple(zip(pools.tolist(), blocks.stream[chosen].tolist(), strict=True)),
        )
        count += max(count // 2, 1)
