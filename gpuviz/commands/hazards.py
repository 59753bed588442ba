"""``gpuviz hazards``: unordered operations on the same memory, with the fix."""

from dataclasses import asdict
from pathlib import Path

from gpuviz.analysis.delayed_frees import delayed_frees_text
from gpuviz.analysis.writes_after_free import writes_after_free_text
from gpuviz.commands.output import say, say_json
from gpuviz.commands.progress import reading
from gpuviz.hazards.known import unknown
from gpuviz.present.text import hazards_text


def run(file: Path, *, as_json: bool) -> None:
    """Print the hazards of a recording.

    Raises:
        GpuvizError: The file cannot be read as a recording.
    """
    recording = reading(file)
    found = recording.hazards()
    if as_json:
        facts = {"hazards": [asdict(each) for each in found], "unknown": unknown(recording)}
        say_json(facts)
        return
    say(hazards_text(recording, found))
    for text in (delayed_frees_text(recording), writes_after_free_text(recording)):
        if text:
            say(f"\n{text}")
