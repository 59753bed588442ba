"""``gpuviz leaks``: lines whose memory grows with the iterations, or with runs of a cell."""

from pathlib import Path

from gpuviz.commands.output import say, say_json
from gpuviz.commands.progress import reading
from gpuviz.conclusions.growth import NOTHING_GROWS, growth_of
from gpuviz.present.text import findings_text


def run(file: Path, *, as_json: bool) -> None:
    """Print the growing lines of a recording.

    Raises:
        GpuvizError: The file cannot be read as a recording.
    """
    found = reading(file).leaks()
    if as_json:
        say_json(found.to_pylist())
    else:
        say(findings_text(growth_of(found)) if found.num_rows else NOTHING_GROWS)
