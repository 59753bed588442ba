"""Writes the tables in docs/explanation/performance.md from what the benchmarks measured.

Usage: python -m scripts.generate_performance [--check]. A table is between the marks of its
benchmark, ``<!-- measured: NAME -->`` and ``<!-- end -->``; its rows are those of NAME.json, which
`tests.benchmarks` saved. With ``--check`` nothing is written, and the exit status is 1 if the
page is out of date.
"""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCUMENT = ROOT / "docs" / "explanation" / "performance.md"
MEASURED = ROOT / "tests" / "benchmarks" / "measured"
_MARKED = re.compile(r"(<!-- measured: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def table(name: str) -> str:
    """Return the rows of a benchmark, with the date and the machine."""
    found = json.loads((MEASURED / f"{name}.json").read_text(encoding="utf-8"))
    lines = [
        f"`python -m tests.benchmarks {name}` on {found['date']}: {found['machine']}.",
        "",
        "| | measured | bound |",
        "| --- | --- | --- |",
    ]
    for what, bound, value, is_within in found["rows"]:
        shown = value if is_within else f"**{value}**"
        lines.append(f"| {what} | {shown} | {'' if bound == 'no bound' else bound} |")
    return "\n".join(lines)


def generated(text: str) -> str:
    """Return the page with all tables."""
    return _MARKED.sub(lambda mark: f"{mark[1]}\n{table(mark[2])}\n\n{mark[3]}", text)


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
