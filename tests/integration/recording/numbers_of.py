"""Every number that the methods of a recording return."""

from dataclasses import asdict
from typing import Any

_OF_FRAGMENTATION = (
    "reserved",
    "requested",
    "rounding",
    "pending_free",
    "inactive_split",
    "cached_whole",
    "free",
    "largest_free",
    "outside",
    "internal",
    "external",
)


def numbers_of(recording: Any) -> dict[str, Any]:
    """Return the results of a recording's methods as JSON values."""
    end = recording.duration_ns
    windows = ((None, None), (0, end), (end // 4, end // 2), (end // 3, end // 3 + 5000))
    found: dict[str, Any] = {
        "duration_ns": end,
        "devices": list(recording.devices),
        "overlap": [_overlap(recording.overlap(start=a, end=b)) for a, b in windows],
        "peak": asdict(recording.peak()),
        "memory_levels": recording.memory_levels.to_pydict(),
    }
    for by in ("name", "line", "stack"):
        found[f"kernels {by}"] = recording.kernels(by).to_pydict()
    for by in ("kind", "line", "stack"):
        found[f"copies {by}"] = recording.copies(by).to_pydict()
        found[f"synchronizations {by}"] = recording.synchronizations(by).to_pydict()
    for by in ("line", "stack"):
        for at in ("peak", "end", end // 2):
            found[f"sites {by} {at}"] = recording.sites(by, at=at).to_pydict()
    for device in recording.devices:
        found[f"stats {device}"] = recording.memory_stats(device)
        for at in ("peak", "end", end // 2):
            answer = recording.fragmentation(at, device)
            found[f"fragmentation {device} {at}"] = {
                name: getattr(answer, name) for name in _OF_FRAGMENTATION
            }
    return found


def _overlap(answer: Any) -> dict[str, Any]:
    return {
        "devices": [asdict(lane) for lane in answer.devices],
        "streams": [asdict(lane) for lane in answer.streams],
    }
