"""All findings of a recording, ranked by what they save."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gpuviz.advice.finding import Finding
    from gpuviz.recording.recording import Recording

    Rule = Callable[[Recording], Iterable[Finding]]

# What saves less is not shown unless asked for.
LEAST_SHARE = 0.01
LEAST_BYTES = 8 << 20


def rules() -> "tuple[Rule, ...]":
    """Return the rules. Each is a function of a recording, in the file named after it."""
    return ()


def findings(recording: "Recording", *, small: bool = False) -> "tuple[Finding, ...]":
    """Return what costs memory or time in a recording, and what to change; most saving first.

    Args:
        recording: The recording.
        small: Whether to include what saves less than 1 % of the peak (and 8 MiB) or of the time.
    """
    found = [finding for rule in rules() for finding in rule(recording)]
    if not small:
        found = [finding for finding in found if _is_relevant(recording, finding)]
    return tuple(sorted(found, key=lambda finding: _share(recording, finding), reverse=True))


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
