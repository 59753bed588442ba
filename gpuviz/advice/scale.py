"""How much a finding has to save to be shown."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import log
from typing import TYPE_CHECKING

from gpuviz.advice.rule import LEAST_BYTES, LEAST_SHARE
from gpuviz.analysis.peak import peak
from gpuviz.analysis.statistics import statistics
from gpuviz.analysis.steady_state import steady_ns
from gpuviz.data.recording_data import RecordingData

if TYPE_CHECKING:
    from gpuviz.advice.finding import Finding

# Of the same time: what explains less than this after the findings with a cause explains nothing.
_LEAST_EXPLAINED = 0.001

# Savings that differ by at most this factor count as equal.
_SAME = 1.1
# Rules that say what all changes of a kind can save, or what others cause: the host's work between
# two calls may be a part of a copy that another rule explains.
_BOUNDS = ("R27", "R43", "R44")


def is_bound(finding: "Finding") -> bool:
    """Return whether a finding only bounds or explains what others save that name a cause."""
    return finding.rule in _BOUNDS


def most_first(found: "Sequence[Finding]", share: "Callable[[Finding], float]") -> "list[Finding]":
    """Return findings by what each saves, most first.

    Of two that save about the same, the one of the rule that occurs first is first. What saves time
    of the warm-up follows the others: a second run has less of it.
    """
    place = {each.rule: at for at, each in reversed(list(enumerate(found)))}
    shares = [share(each) for each in found]
    about = [round(log(each) / log(_SAME)) if each > 0 else -(10**6) for each in shares]
    order = sorted(
        range(len(found)),
        key=lambda at: (
            found[at].is_of_warm_up,
            -about[at],
            place[found[at].rule],
            -shares[at],
        ),
    )
    return [found[at] for at in order]


class Scale:
    """What the savings of a recording's findings are compared with."""

    def __init__(self, recording: RecordingData) -> None:
        self._peaks = {device: peak(recording, device).bytes for device in recording.devices}
        self._reserved = {
            device: statistics(recording, device)["reserved_bytes.all.peak"]
            for device in recording.devices
        }
        self._steady_ns = max(steady_ns(recording), 1)
        self._covered_ns = max(recording.covered_ns, 1)

    def with_peak(self, finding: "Finding") -> "Finding":
        """Return a finding with the peak of which it saves a part."""
        is_of_reserved = finding.saved_reserved_bytes and not finding.saved_bytes
        peaks = self._reserved if is_of_reserved else self._peaks
        return replace(finding, peak_bytes=peaks.get(finding.device, 0))

    def is_relevant(self, finding: "Finding") -> bool:
        """Return whether a finding saves enough to be shown."""
        enough = max(LEAST_SHARE * self._peaks.get(finding.device, 0), LEAST_BYTES)
        is_long = finding.saved_ns >= LEAST_SHARE * self._of(finding)
        reserved = max(LEAST_SHARE * self._reserved.get(finding.device, 0), LEAST_BYTES)
        is_large = finding.saved_bytes >= enough or finding.saved_reserved_bytes >= reserved
        return is_large or is_long

    def adds_something(self, finding: "Finding") -> bool:
        """Return whether a finding saves enough after those before it to be shown."""
        least = _LEAST_EXPLAINED * self._of(finding) if is_bound(finding) else 0
        memory = replace(finding, saved_bytes=finding.further_bytes, saved_ns=0)
        return finding.further_ns > least or self.is_relevant(memory)

    def share(self, finding: "Finding") -> float:
        """Return the largest share of a peak, or of the time without warm-up, that it saves."""
        of_bytes = finding.saved_bytes / max(self._peaks.get(finding.device, 0), 1)
        of_reserved = finding.saved_reserved_bytes / max(self._reserved.get(finding.device, 0), 1)
        saved_ns = finding.further_ns if is_bound(finding) else finding.saved_ns
        return max(of_bytes, of_reserved, saved_ns / self._of(finding))

    def _of(self, finding: "Finding") -> int:
        return self._covered_ns if finding.is_of_warm_up else self._steady_ns
