"""Invariants of every allocator at any time, computed from its snapshot alone."""

from collections import Counter
from itertools import pairwise
from typing import Any

from gpuviz import _core

POOLS = ("all", "small_pool", "large_pool")
COUNTED = (
    "segment",
    "reserved_bytes",
    "allocated_bytes",
    "allocation",
    "active_bytes",
    "active",
    "requested_bytes",
    "inactive_split",
    "inactive_split_bytes",
)


def recomputed_stats(segments: list[dict[str, Any]]) -> dict[str, int]:
    """Return the current value of every statistic that a snapshot determines."""
    totals: Counter[str] = Counter()
    for segment in segments:
        for pool in ("all", f"{segment['segment_type']}_pool"):
            for key, value in _counts(segment).items():
                totals[f"{key}.{pool}.current"] += value
    return {
        f"{key}.{pool}.current": totals[f"{key}.{pool}.current"]
        for key in COUNTED
        for pool in POOLS
    }


def _counts(segment: dict[str, Any]) -> dict[str, int]:
    blocks = segment["blocks"]
    states = Counter(block["state"] for block in blocks)
    returnable = segment["is_expandable"] or len(blocks) == 1
    split = [b["size"] for b in blocks if b["state"] == "inactive" and not returnable]
    return {
        "segment": int(not segment["is_expandable"]),
        "reserved_bytes": segment["total_size"],
        "allocated_bytes": segment["allocated_size"],
        "allocation": states["active_allocated"],
        "active_bytes": segment["active_size"],
        "active": states["active_allocated"] + states["active_pending_free"],
        "requested_bytes": segment["requested_size"],
        "inactive_split": len(split),
        "inactive_split_bytes": sum(split),
    }


def check(allocator: _core.CachingAllocator, device: _core.SimulatedDevice) -> None:
    """Assert every invariant."""
    segments = allocator.memory_snapshot()
    stats = allocator.memory_stats()
    expected = recomputed_stats(segments)

    assert {key: stats[key] for key in expected} == expected
    assert stats["reserved_bytes.all.current"] == device.used
    assert_no_overlap(segments)
    for segment in segments:
        assert_covered_by_blocks(segment)
        assert_merged(segment)
    assert_counters_consistent(stats)


def assert_no_overlap(segments: list[dict[str, Any]]) -> None:
    for left, right in pairwise(segments):
        assert left["address"] + left["total_size"] <= right["address"]


def assert_covered_by_blocks(segment: dict[str, Any]) -> None:
    address = segment["address"]
    for block in segment["blocks"]:
        assert block["address"] == address
        assert block["size"] % 512 == 0
        if block["state"] != "inactive":
            assert 0 < block["requested_size"] <= block["size"]
        address += block["size"]
    assert address == segment["address"] + segment["total_size"]


def assert_merged(segment: dict[str, Any]) -> None:
    states = [block["state"] for block in segment["blocks"]]
    assert ("inactive", "inactive") not in list(pairwise(states))


def assert_counters_consistent(stats: dict[str, int]) -> None:
    names = [key.removesuffix(".current") for key in stats if key.endswith(".current")]
    for name in names:
        assert stats[f"{name}.current"] == stats[f"{name}.allocated"] - stats[f"{name}.freed"], name
        assert stats[f"{name}.peak"] >= stats[f"{name}.current"], name
