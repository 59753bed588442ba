"""``gpuviz findings``: what costs memory or time in a recording, and what to change."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpuviz.advice.dominant import dominant
from gpuviz.advice.finding import Finding
from gpuviz.advice.text import MOST_SHOWN, findings_text, unknown
from gpuviz.commands.output import say, say_json
from gpuviz.commands.progress import reading


def run(file: Path, *, as_json: bool, everything: bool) -> None:
    """Print the findings of a recording.

    Raises:
        GpuvizError: The file cannot be read as a recording.
    """
    recording = reading(file)
    found = recording.findings(small=everything)
    if as_json:
        facts = {
            "dominant": [asdict(each) for each in dominant(recording)],
            "findings": [_facts(each) for each in found],
            "unknown": unknown(recording),
        }
        say_json(facts)
        return
    say(findings_text(recording, found, None if everything else MOST_SHOWN))


def _facts(finding: Finding) -> dict[str, Any]:
    facts = asdict(finding)
    del facts["lifetimes"], facts["schedule"]
    return facts
