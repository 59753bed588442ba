"""Whether a finding's saving came true in a later recording of the changed program."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuviz.advice.finding import Finding
from gpuviz.advice.replay.compensation import compensated
from gpuviz.advice.replay.trace import Trace
from gpuviz.analysis.peak import peak
from gpuviz.analysis.statistics import statistics
from gpuviz.comparison.limits import amount
from gpuviz.conclusions.wording import saving
from gpuviz.data.recording_data import RecordingData
from gpuviz.quantities import format_share

# Of the prediction; repeated runs of a program differ by less.
_CLOSE = 0.2


@dataclass(frozen=True, slots=True)
class Outcome:
    """A quantity that a finding should have lowered.

    Attributes:
        name: What it is.
        unit: ``B`` or ``ns``.
        before: Its value in the recording of the finding.
        after: Its value in the later recording.
        predicted: By how much the finding would lower it.
    """

    name: str
    unit: str
    before: int
    after: int
    predicted: int

    @property
    def saved(self) -> int:
        """By how much it is lower."""
        return self.before - self.after

    def __str__(self) -> str:
        share = self.saved / self.predicted
        verdict = "as predicted"
        if self.saved <= 0:
            verdict = "nothing was saved"
        elif abs(share - 1) > _CLOSE:
            verdict = f"{format_share(share)} of the prediction"
        return (
            f"{self.name}: {amount(self.predicted, self.unit)} predicted, "
            f"{amount(self.saved, self.unit)} saved ({amount(self.before, self.unit)} before, "
            f"{amount(self.after, self.unit)} after): {verdict}."
        )


def outcomes(before: RecordingData, after: RecordingData, finding: Finding) -> Iterator[Outcome]:
    """Yield what a finding about the first recording should have lowered, as far as recorded."""
    device = finding.device
    if finding.saved_bytes and device in after.devices:
        one, other = (peak(each, device).bytes for each in (before, after))
        yield Outcome("Peak of allocated bytes", "B", one, other, finding.saved_bytes)
    if finding.saved_reserved_bytes and device in after.devices:
        name = "reserved_bytes.all.peak"
        one, other = (statistics(each, device)[name] for each in (before, after))
        yield Outcome("Peak of reserved bytes", "B", one, other, finding.saved_reserved_bytes)
    if finding.saved_ns and after.tables["activities"].num_rows:
        one, other = (Trace(compensated(each)).working_ns for each in (before, after))
        yield Outcome("Time from first launch to last work", "ns", one, other, finding.saved_ns)


def followed_text(
    before: RecordingData,
    after: RecordingData,
    finding: Finding,
    findings_after: Sequence[Finding],
) -> str:
    """Return whether a finding's saving came true, and whether it still holds.

    Args:
        before: The recording that it is about.
        after: A recording of the program in which its advice was followed.
        finding: The finding.
        findings_after: The findings about the second recording.
    """
    lines = [f"{finding.title} [{finding.rule}, {finding.certainty}]"]
    found = list(outcomes(before, after, finding))
    lines += [f"   {each}" for each in found]
    if not found:
        lines.append("   Nothing that it saves can be compared in these recordings.")
    rest = next((each for each in findings_after if _is_same(each, finding)), None)
    if rest is None:
        lines.append("   The second recording no longer has this finding.")
    else:
        more = f" It would save {saved}." if (saved := saving(rest)) else ""
        lines.append(f"   The second recording still has it.{more}")
    return "\n".join(lines)


def _is_same(one: Finding, other: Finding) -> bool:
    """Return whether two findings of a rule are about one line, which may have moved."""
    if one.rule != other.rule or one.device != other.device:
        return False
    places = [{line.source or line.site for line in each.lines[:1]} for each in (one, other)]
    return places[0] == places[1]
