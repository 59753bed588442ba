"""What gpuviz says: what is wrong or costs memory or time, why it thinks so, what to change."""

from dataclasses import dataclass, field
from typing import Literal

from gpuviz.advice.evidence import Evidence, Line
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.data.call_stacks import BACKWARD_OF, short_site
from gpuviz.terminal import printable

Certainty = Literal["certain", "likely", "possible"]
_CLOSED = {"(": ")", "[": "]", "{": "}"}
# Of a finding about all devices together.
ALL_DEVICES = -1
_BACKWARD = "the backward pass of "
Kind = Literal["hazard", "failure", "finding", "fact", "regression", "growth"]


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that gpuviz says about a recording: what it is, why, and what to change.

    Attributes:
        rule: The rule that found it, such as ``R45``; see docs/reference/findings.md. Empty
            if none did.
        title: The finding with its figures, in one line.
        reason: The figures that gpuviz followed.
        change: What to change in the program; empty if nothing follows.
        certainty: ``certain`` if it follows from the recording alone, ``likely`` if it rests on
            what gpuviz can see of kernels' arguments, ``possible`` if the program's intention
            decides.
        device: Ordinal; `ALL_DEVICES` for all together.
        saved_bytes: Predicted decrease of the peak of allocated bytes if this alone is changed.
        saved_reserved_bytes: Predicted decrease of the peak of reserved bytes if this alone is
            changed, where that is what a change of the allocator or of streams saves. If requests
            failed, compared with what would have been reserved if the first had succeeded.
        saved_ns: Predicted decrease of the time if this alone is changed, in ns.
        lines: The lines of the program behind it, largest share first.
        evidence: What to look at; None if there is nothing particular.
        lifetimes: The lifetimes of blocks after the change; None if it does not change them.
        further_bytes: By how much the peak decreases further if this is changed after all findings
            ranked before it.
        schedule: What takes less time after the change; None if nothing does, and in the results of
            `gpuviz.advice.findings.findings`.
        further_ns: By how much the time decreases further if this is changed after all findings
            ranked before it, in ns.
        working_ns: The time from the first launch to the end of the last work, without the idle
            time of warm-up and between cells, of which it saves a part, in ns; 0 if unknown.
        peak_bytes: The peak of the device's allocated bytes, or of its reserved ones if it saves
            only of those, of which it saves a part; 0 if unknown.
        is_of_warm_up: Whether it saves time that the program takes once, before it works; not in
            findings that were read from a file.
        kind: ``hazard`` if results may be wrong, ``failure`` if something failed or nearly did,
            ``finding`` if a change saves memory or time, ``fact`` if it is no fault, ``regression``
            if it costs more than in an earlier recording, ``growth`` if a line's memory grows.
    """

    rule: str
    title: str
    reason: str
    change: str
    certainty: Certainty
    device: int
    saved_bytes: int = 0
    saved_ns: int = 0
    lines: tuple[Line, ...] = ()
    evidence: Evidence | None = None
    lifetimes: Change | None = field(default=None, repr=False, compare=False)
    further_bytes: int = 0
    saved_reserved_bytes: int = 0
    schedule: ScheduleChange | None = field(default=None, repr=False, compare=False)
    further_ns: int = 0
    working_ns: int = 0
    peak_bytes: int = 0
    is_of_warm_up: bool = field(default=False, repr=False, compare=False)
    kind: Kind = "finding"

    @property
    def is_alarm(self) -> bool:
        """Whether the program failed or nearly did, or its results may be wrong."""
        return self.kind in {"hazard", "failure"}

    def __repr__(self) -> str:
        return printable(f"<Finding {self.rule}: {self.title}>")

    def __str__(self) -> str:
        from gpuviz.present.text import finding_text

        return printable(finding_text(self))

    def _repr_html_(self) -> str:
        return Findings([self])._repr_html_()


class Findings(tuple[Finding, ...]):
    """Findings, most saving first; a notebook and a terminal show them as a list."""

    __slots__ = ()

    def __repr__(self) -> str:
        from gpuviz.present.text import findings_text

        return printable(findings_text(self))

    def _repr_html_(self) -> str:
        from gpuviz.present.conclusions_html import notebook_list

        return str(notebook_list(self))


def named(site: str, source: str) -> str:
    """Return a line of the program for a sentence: its text if known, else where it is.

    A call that goes on in further lines is closed: ``f(…)``.
    """
    if not source:
        return short_site(site) or "an unknown line"
    text = f"`{source}…{_CLOSED[source[-1]]}`" if source[-1] in _CLOSED else f"`{source}`"
    return f"{_BACKWARD}{text}" if site.startswith(BACKWARD_OF) else text


def is_of_backward(name: str) -> bool:
    """Return whether `named` has returned a name for the backward pass of a line."""
    return name.startswith(_BACKWARD)


def as_subject(name: str) -> str:
    """Return what `named` has returned as the first words of a sentence."""
    return f"T{name[1:]}" if is_of_backward(name) else name
