"""Everything that gpuviz says about a recording, in the order in which every medium shows it."""

from collections.abc import Sequence

from gpuviz.advice.finding import Finding
from gpuviz.advice.findings import findings, varied
from gpuviz.conclusions.facts import failures, other_facts
from gpuviz.conclusions.rows import finding_of
from gpuviz.data.conclusions import stored_conclusions
from gpuviz.data.once import Once
from gpuviz.data.recording_data import RecordingData


def ranked(recording: RecordingData, found: Sequence[Finding]) -> tuple[Finding, ...]:
    """Return what gpuviz says about a recording, given its findings.

    What may make results wrong comes first, then what failed, then what saves memory or time, most
    saving first and with each rule once among the first few, then what trades time for memory, then
    facts that are no faults.
    """
    devices = recording.devices
    return (
        *(each for each in found if each.kind == "hazard"),
        *(each for device in devices for each in failures(recording, device, found)),
        *varied([each for each in found if each.kind == "finding"]),
        *other_facts(recording),
    )


@Once
def conclusions(recording: RecordingData) -> tuple[Finding, ...]:
    """Return what gpuviz says about a recording, in the order in which every medium shows it."""
    stored = stored_conclusions(recording).get("conclusions")
    if stored is not None:
        return tuple(map(finding_of, stored.to_pylist()))
    return ranked(recording, findings(recording))


def known_findings(recording: RecordingData) -> tuple[Finding, ...]:
    """Return the findings that are worth showing, most saving first."""
    return tuple(each for each in conclusions(recording) if each.kind in {"hazard", "finding"})


def all_conclusions(recording: RecordingData) -> tuple[Finding, ...]:
    """Return what gpuviz says about a recording, with findings that save little or nothing."""
    return ranked(recording, findings(recording, small=True))
