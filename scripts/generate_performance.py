"""Writes the tables in docs/explanation/performance.md from what was measured.

Usage: python -m scripts.generate_performance [--check]. A table is between the marks of its
benchmarks, ``<!-- measured: NAME ... -->`` and ``<!-- end -->``. Its rows are those of each
NAME.json, which `tests.benchmarks` saved, or, until there are all of these, those of the first name
in earlier.json: runs that were not saved. With ``--check`` nothing is written, and the exit status
is 1 if the page is out of date.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "explanation" / "performance.md"
MEASURED = ROOT / "tests" / "benchmarks" / "measured"
EARLIER = ROOT / "tests" / "benchmarks" / "earlier.json"
MARKED = re.compile(r"(<!-- measured: ([\w ]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def are_saved(names: list[str]) -> bool:
    """Return whether all of some benchmarks were saved."""
    return all((MEASURED / f"{name}.json").exists() for name in names)


def tables(names: list[str]) -> str:
    """Return the rows of benchmarks, with the date and the machine of each."""
    if not are_saved(names):
        return _transcribed(names[0])
    return "\n\n".join(map(_saved, names))


def _saved(name: str) -> str:
    found = json.loads((MEASURED / f"{name}.json").read_text(encoding="utf-8"))
    source = f"`{found['command']}` on {found['date']}: {found['machine']}."
    return _drawn(source, ["what", "measured", "bound"], _marked(found["rows"]))


def _transcribed(name: str) -> str:
    found = json.loads(EARLIER.read_text(encoding="utf-8"))[name]
    command = f", `{found['command']}`" if found["command"] else ""
    source = f"{found['date']}{command}: {found['machine']}. Transcribed: the run was not saved."
    return _drawn(source, found["header"], found["rows"])


def _marked(rows: list[Any]) -> Iterator[list[str]]:
    """Yield the cells of saved rows, with those in bold that miss their bound."""
    for what, bound, value, is_within in rows:
        shown = value if is_within else f"**{value}**"
        yield [what, shown, "" if bound == "no bound" else bound]


def _drawn(source: str, header: list[str], rows: Any) -> str:
    lines = [header, ["---"] * len(header), *rows]
    drawn = (f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in lines)
    return "\n".join([source, "", *drawn])


def generated(text: str) -> str:
    """Return the page with all tables."""
    return MARKED.sub(lambda mark: f"{mark[1]}\n{tables(mark[2].split())}\n\n{mark[3]}", text)


def main(arguments: list[str]) -> int:
    """Write the page, or check it; return the exit status."""
    text = DOCUMENT.read_text(encoding="utf-8")
    made = generated(text)
    if made == text:
        return 0
    print(DOCUMENT.relative_to(ROOT))
    if "--check" in arguments:
        return 1
    DOCUMENT.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
