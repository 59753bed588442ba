"""The code blocks of the documentation."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
# Without what a build of the site writes.
PAGES = [
    ROOT / "README.md",
    *sorted(each for each in (ROOT / "docs").rglob("*.md") if each.parent.name != "generated"),
]
_SAVED = re.compile(r"[Ss]ave this as `(\w+\.py)`(?:.|\n(?!\n))*\n+\Z")
_FENCE = re.compile(
    r"^(?P<mark><!-- (?P<needs>[\w ]+) -->\n\n?)?"
    r"(?P<fence>```+)(?P<language>[^\n]*)\n(?P<text>.*?)^(?P=fence)[ ]*$"
    r"(?=(?P<following>\n\n(?:Output:\n\n)?```text\n(?P<output>.*?)^```[ ]*$)?)",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True, slots=True)
class Block:
    """A code block of a page.

    Attributes:
        language: What the fence names; empty if nothing.
        text: The code.
        line: Where it begins in its page.
        needs: What the comment before the fence says that it needs, such as ``gpu``.
        output: The text block that follows directly; empty if there is none.
        file: The name under which the paragraph before tells readers to save it; empty if none.
    """

    language: str
    text: str
    line: int
    needs: str
    output: str
    file: str


def name_of(page: Path) -> str:
    """Return a page's path in the repository."""
    return page.relative_to(ROOT).as_posix()


def blocks_of(page: Path) -> Iterator[Block]:
    """Yield the code blocks of a page in their order."""
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start("fence")) + 1
        needs, output = found["needs"] or "", found["output"] or ""
        named = _SAVED.search(text[: found.start()])
        file = named[1] if named else ""
        yield Block(found["language"].strip(), found["text"], line, needs, output, file)
