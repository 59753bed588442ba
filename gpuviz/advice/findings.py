"""All findings of a recording, ranked by what they save."""

from dataclasses import replace
from typing import TYPE_CHECKING

from gpuviz.advice.memory_changes import device_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gpuviz.advice.finding import Finding
    from gpuviz.advice.memory_changes import Change, DeviceBlocks
    from gpuviz.advice.schedule import Schedule
    from gpuviz.recording.recording import Recording

    TimeRule = Callable[[Schedule], Iterable[Finding]]
    MemoryRule = Callable[[DeviceBlocks], Iterable[Finding]]

# What saves less is not shown unless asked for.
LEAST_SHARE = 0.01
LEAST_BYTES = 8 << 20


def memory_rules() -> "tuple[MemoryRule, ...]":
    """Return the rules about the memory of a device, each in the file named after it.

    Of two that save the same bytes, the earlier is easier to follow.
    """
    from gpuviz.advice.rules import (
        r01_unused_allocation,
        r02_early_allocation,
        r05_temporary_idleness,
        r07_missed_in_place,
        r08_chain_of_temporaries,
        r30_dead_write,
        r33_wider_type,
        r34_materialized_broadcast,
        r45_dead_at_the_peak,
        r46_same_bytes_twice,
    )

    return (
        r01_unused_allocation.find,
        r45_dead_at_the_peak.find,
        r02_early_allocation.find,
        r46_same_bytes_twice.find,
        r34_materialized_broadcast.find,
        r08_chain_of_temporaries.find,
        r07_missed_in_place.find,
        r30_dead_write.find,
        r33_wider_type.find,
        r05_temporary_idleness.find,
    )


def time_rules() -> "tuple[TimeRule, ...]":
    """Return the rules about the time of a recording, each in the file named after it."""
    from gpuviz.advice.rules import (
        r17_pageable_copies,
        r21_tiny_transfers,
        r25_unhidden_transfer,
        r27_launch_bound,
        r41_waits_for_earlier_work,
        r42_underfilled_kernel,
        r43_starved_by_the_host,
        r44_streams_that_never_overlap,
    )

    return (
        r17_pageable_copies.find,
        r21_tiny_transfers.find,
        r25_unhidden_transfer.find,
        r27_launch_bound.find,
        r41_waits_for_earlier_work.find,
        r42_underfilled_kernel.find,
        r43_starved_by_the_host.find,
        r44_streams_that_never_overlap.find,
    )


def findings(recording: "Recording", *, small: bool = False) -> "tuple[Finding, ...]":
    """Return what costs memory or time in a recording, and what to change; most saving first.

    Args:
        recording: The recording.
        small: Whether to include what saves less than 1 % of the peak (and 8 MiB) or of the time,
            or saves nothing after the findings before it.
    """
    from gpuviz.advice.schedule import Schedule

    scale = _Scale(recording)
    schedule = Schedule(recording) if recording.tables["activities"].num_rows else None
    found = [] if schedule is None else list(_about_time(schedule))
    for device in [] if schedule is None else device_blocks(recording, schedule):
        of_device = [finding for rule in memory_rules() for finding in rule(device)]
        of_device = [each for each in of_device if small or scale.is_relevant(each)]
        of_device.sort(key=lambda finding: -finding.saved_bytes)
        sequence = _in_sequence(device, of_device)
        found.extend(each for each in sequence if small or each.further_bytes or each.saved_ns)
    shown = (finding for finding in found if small or scale.is_relevant(finding))
    return tuple(sorted(shown, key=scale.share, reverse=True))


def _about_time(schedule: "Schedule") -> "Iterator[Finding]":
    for rule in time_rules():
        yield from rule(schedule)


def _in_sequence(device: "DeviceBlocks", found: "list[Finding]") -> "Iterator[Finding]":
    """Yield the findings with what each saves after the ones before it."""
    peak, changes = device.peak.bytes, list["Change"]()
    for finding in found:
        if finding.lifetimes is None:
            yield finding
            continue
        changes.append(finding.lifetimes)
        after = device.peak_after(changes)
        yield replace(finding, further_bytes=max(peak - after, 0))
        peak = min(peak, after)


class _Scale:
    """What the savings of a recording's findings are compared with."""

    def __init__(self, recording: "Recording") -> None:
        self._peaks = {device: recording.peak(device).bytes for device in recording.devices}
        self._duration_ns = max(recording.covered_ns, 1)

    def is_relevant(self, finding: "Finding") -> bool:
        """Return whether a finding saves enough to be shown."""
        enough = max(LEAST_SHARE * self._peaks.get(finding.device, 0), LEAST_BYTES)
        is_long = finding.saved_ns >= LEAST_SHARE * self._duration_ns
        return finding.saved_bytes >= enough or is_long

    def share(self, finding: "Finding") -> float:
        """Return the larger of the shares of the peak and of the duration that it saves."""
        of_bytes = finding.saved_bytes / max(self._peaks.get(finding.device, 0), 1)
        return max(of_bytes, finding.saved_ns / self._duration_ns)
