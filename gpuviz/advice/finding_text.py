"""A finding, and several, as text."""

from typing import TYPE_CHECKING

from gpuviz.quantities import format_bytes, format_duration, format_share

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpuviz.advice.finding import Finding

NOTHING_FOUND = "Nothing was found that would save 1 % of the peak (and 8 MiB) or of the time."


def saving(finding: "Finding") -> str:
    """Return what a finding saves: bytes of the peak, reserved memory, time, or several of these.

    A saving after the findings before it is given if it differs.
    """
    parts = []
    if finding.saved_bytes:
        size = f"{format_bytes(finding.saved_bytes)} of the peak"
        parts.append(size + _after_others(finding.saved_bytes, finding.further_bytes, format_bytes))
    if finding.saved_reserved_bytes:
        parts.append(f"{format_bytes(finding.saved_reserved_bytes)} of reserved memory")
    if finding.saved_ns:
        about = "" if finding.certainty == "certain" else "about "
        time = f"{about}{format_duration(finding.saved_ns)}{_share(finding)}"
        parts.append(time + _after_others(finding.saved_ns, finding.further_ns, format_duration))
    return " and ".join(parts)


def _share(finding: "Finding") -> str:
    if not finding.working_ns:
        return ""
    return f", {format_share(min(finding.saved_ns / finding.working_ns, 1))} of the time"


def _after_others(alone: int, further: int, text: "Callable[[int], str]") -> str:
    if text(alone) == text(further):
        return ""
    return f" (after those above: {text(further) if further > 0 else 'nothing'})"


def finding_text(finding: "Finding") -> str:
    """Return a finding as text: the title, and indented what it saves, why, and what to change."""
    saved = saving(finding)
    parts = [f"Saves {saved}."] if saved else []
    parts += [finding.reason, finding.change]
    parts += [f"{line.amount}: {line.site}" for line in finding.lines]
    title = f"{finding.title} [{finding.rule}, {finding.certainty}]"
    return "\n   ".join([title, *parts])


def numbered(found: "Sequence[Finding]") -> list[str]:
    """Return the texts of findings, numbered."""
    return [f"{number}. {finding_text(each)}" for number, each in enumerate(found, 1)]
