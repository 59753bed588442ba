"""Allocator statistics at the end of a recording."""

from gpuviz.analysis.state import state_at
from gpuviz.data.recording_data import RecordingData

# Statistics that cannot be derived from events, taken from the allocator's final counters.
COUNTED_LIVE = {
    "max_split_size": -1,
    "num_alloc_retries": 0,
    "num_sync_all_streams": 0,
    **{
        f"oversize_{what}.{which}": 0
        for what in ("allocations", "segments")
        for which in ("allocated", "current", "freed", "peak")
    },
}


def statistics(recording: RecordingData, device: int | None = None) -> dict[str, int]:
    """Return the statistics of a device with the keys of ``torch.cuda.memory_stats``, sorted.

    Initial memory counts in ``current`` and ``peak``, but not in ``allocated``.

    Raises:
        ValueError: The recording has no such device.
    """
    device = recording.device_or_first(device)
    live = recording.manifest.memory_stats.get(device, {})
    counted = {key: live.get(key, default) for key, default in COUNTED_LIVE.items()}
    return dict(sorted((state_at(recording).statistics(device) | counted).items()))
