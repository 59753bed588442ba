"""``gpuviz findings``: what costs memory or time in a recording, and what to change."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpuviz.advice.finding import Finding
from gpuviz.commands.output import say, say_json
from gpuviz.commands.progress import reading
from gpuviz.conclusions.item import AT_ONCE
from gpuviz.conclusions.ranking import all_conclusions, conclusions
from gpuviz.conclusions.wording import unknown
from gpuviz.present.text import conclusions_text


def run(file: Path, *, as_json: bool, everything: bool) -> None:
    """Print the findings of a recording.

    Raises:
        GpuvizError: The file cannot be read as a recording.
    """
    recording = reading(file)
    found = all_conclusions(recording) if everything else conclusions(recording)
    if as_json:
        facts = {
            "findings": [_facts(each) for each in found],
            "unknown": unknown(recording),
        }
        say_json(facts)
        return
    say(conclusions_text(recording, found, None if everything else AT_ONCE))


def _facts(finding: Finding) -> dict[str, Any]:
    facts = asdict(finding)
    del facts["lifetimes"], facts["schedule"]
    return facts
