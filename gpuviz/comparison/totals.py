"""Totals of a recording that are compared with those of another."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpuviz.analysis.derived_tables import derived
from gpuviz.analysis.launches import durations
from gpuviz.data.columns import codes, plain
from gpuviz.data.derived import DICTIONARIES as DERIVED
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS, DICTIONARIES

_KINDS = DICTIONARIES["activities", "kind"]
_CAUSES = DERIVED["idle_gaps", "cause"]
_WHOLE_DEVICE = 0
# What a limit may be set on: the unit, and what the name means.
QUANTITIES = {
    "peak": ("B", "Peak of allocated bytes"),
    "reserved": ("B", "Peak of reserved bytes"),
    "allocations": ("", "Allocations"),
    "time": ("ns", "Length of the recording"),
    "kernel_time": ("ns", "Kernels on the GPU"),
    "kernels": ("", "Kernels"),
    "copied": ("B", "Copied bytes"),
    "copies": ("", "Copies"),
    "copy_time": ("ns", "Copies on the GPU"),
    "memsets": ("", "Memsets"),
    "memset_time": ("ns", "Memsets on the GPU"),
    "waits": ("", "Host waits"),
    "wait_time": ("ns", "Time the host was blocked"),
    "idle_time": ("ns", "Idle time of the GPU"),
}


def totals(recording: RecordingData) -> dict[str, int]:
    """Return the totals of all devices together, without those of memory."""
    activities = recording.tables["activities"]
    kinds = codes(activities["kind"], _KINDS)
    lengths = durations(activities, recording.bounds)
    is_kernel, is_copy, is_memset = (
        kinds == _KINDS.index(kind) for kind in ("kernel", "memcpy", "memset")
    )
    events = recording.tables["memory_events"].slice(recording.manifest.initial_events)
    is_allocation = codes(events["action"], ACTIONS) == ACTIONS.index("alloc")
    waits = durations(derived(recording)["host_waits"])
    return {
        "allocations": int(is_allocation.sum()),
        "time": recording.covered_ns,
        "kernel_time": int(lengths[is_kernel].sum()),
        "kernels": int(is_kernel.sum()),
        "copied": int(plain(activities["bytes"])[is_copy].sum()),
        "copies": int(is_copy.sum()),
        "copy_time": int(lengths[is_copy].sum()),
        "memsets": int(is_memset.sum()),
        "memset_time": int(lengths[is_memset].sum()),
        "waits": len(waits),
        "wait_time": int(waits.sum()),
        "idle_time": sum(idle_time(recording).values()),
    }


def idle_time(recording: RecordingData) -> dict[str, int]:
    """Return the time by cause in which a whole device was idle, in ns."""
    gaps = derived(recording)["idle_gaps"]
    is_whole = plain(gaps["stream"]) == _WHOLE_DEVICE
    causes, lengths = codes(gaps["cause"], _CAUSES)[is_whole], durations(gaps)[is_whole]
    return {cause: int(lengths[causes == number].sum()) for number, cause in enumerate(_CAUSES)}


def changed(
    before: Mapping[str, int], after: Mapping[str, int], device: int | None = None
) -> Iterator[dict[str, Any]]:
    """Yield a row for each quantity of both."""
    for name, value in before.items():
        yield {
            "name": name,
            "device": device,
            "unit": QUANTITIES[name][0],
            "before": value,
            "after": after[name],
            "change": after[name] - value,
        }
