"""Constants that Python, C++ and TypeScript share."""

import re
import subprocess
import sys
from pathlib import Path

from gpuviz.data import tables
from gpuviz.figures import palette

ROOT = Path(__file__).parents[2]
TYPESCRIPT = ROOT / "extension" / "src"


def test_the_generated_codes_are_up_to_date():
    command = [sys.executable, ROOT / "scripts" / "generate_codes.py", "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_charts_have_the_colours_of_the_dashboard():
    light = (TYPESCRIPT / "view/theme.css").read_text().partition("@media")[0]
    kinds_of_spans = (TYPESCRIPT / "model" / "span_kinds.ts").read_text()
    listed = kinds_of_spans.partition("const KINDS = {")[2].partition("} as const")[0]
    spans = re.findall(r"^  (\w+): ", listed, re.MULTILINE)
    colours = dict(re.findall(r"--gpuviz-([\w-]+): (#\w{6});", light))
    # The parts of a training step, which come last, have colours of categories.
    of_kinds = spans[: spans.index("forward")]
    kinds = {word: colours[f"kind-{place}"] for place, word in enumerate(of_kinds)}
    copies = tables.DICTIONARIES["activities", "copy_kind"]
    camel = {word: re.sub(r"_(\w)", lambda found: found[1].upper(), word) for word in copies}

    assert (colours["allocated"], colours["reserved"]) == (palette.ALLOCATED, palette.RESERVED)
    assert (colours["cached-edge"], kinds["kernel"]) == (palette.FREE, palette.KERNEL)
    assert kinds["memset"] == palette.MEMSET
    assert {
        word: kinds["deviceToDevice" if "peer" in word else camel[word]]
        if "peer" in word or camel[word] in kinds
        else kinds["otherCopy"]
        for word in copies
    } == palette.COPIES
