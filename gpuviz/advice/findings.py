"""All findings of a recording, ranked by what they save."""

from dataclasses import replace
from typing import TYPE_CHECKING

from gpuviz.advice.memory_changes import device_blocks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gpuviz.advice.finding import Finding
    from gpuviz.advice.memory_changes import Change, DeviceBlocks
    from gpuviz.recording.recording import Recording

    Rule = Callable[[Recording], Iterable[Finding]]
    MemoryRule = Callable[[DeviceBlocks], Iterable[Finding]]

# What saves less is not shown unless asked for.
LEAST_SHARE = 0.01
LEAST_BYTES = 8 << 20


def memory_rules() -> "tuple[MemoryRule, ...]":
    """Return the rules about the memory of a device, each in the file named after it."""
    from gpuviz.advice.rules import (
        r07_missed_in_place,
        r45_dead_at_the_peak,
        r46_same_bytes_twice,
    )

    return (r07_missed_in_place.find, r45_dead_at_the_peak.find, r46_same_bytes_twice.find)


def rules() -> "tuple[Rule, ...]":
    """Return the rules about a recording as a whole, each in the file named after it."""
    return ()


def findings(recording: "Recording", *, small: bool = False) -> "tuple[Finding, ...]":
    """Return what costs memory or time in a recording, and what to change; most saving first.

    Args:
        recording: The recording.
        small: Whether to include what saves less than 1 % of the peak (and 8 MiB) or of the time.
    """
    found = [finding for rule in rules() for finding in rule(recording)]
    for device in device_blocks(recording):
        of_device = [finding for rule in memory_rules() for finding in rule(device)]
        of_device.sort(key=lambda finding: -finding.saved_bytes)
        if not small:
            of_device = [each for each in of_device if _is_relevant(recording, each)]
        found.extend(_in_sequence(device, of_device))
    if not small:
        found = [finding for finding in found if _is_relevant(recording, finding)]
    return tuple(sorted(found, key=lambda finding: _share(recording, finding), reverse=True))


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


def _is_relevant(recording: "Recording", finding: "Finding") -> bool:
    peak = recording.peak(finding.device).bytes
    enough_bytes = max(LEAST_SHARE * peak, LEAST_BYTES)
    enough_ns = LEAST_SHARE * recording.duration_ns
    return finding.saved_bytes >= enough_bytes or finding.saved_ns >= enough_ns


def _share(recording: "Recording", finding: "Finding") -> float:
    """Return the larger of the shares of the peak and of the duration that a finding saves."""
    peak = recording.peak(finding.device).bytes
    of_bytes = finding.saved_bytes / max(peak, 1)
    return max(of_bytes, finding.saved_ns / max(recording.duration_ns, 1))
