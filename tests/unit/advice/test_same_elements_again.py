"""R57: kernels that compute elements from numbers alone, recorded on a GPU; see data/sharpen.py."""

from pathlib import Path

import gpuviz
from gpuviz.advice.findings import findings

RECORDED = Path(__file__).parent / "data" / "sharpen.gpuviz"


def test_what_is_made_of_the_same_elements_is_the_same_but_for_random_numbers():
    made = findings(gpuviz.load(RECORDED), small=True)
    (finding,) = (each for each in made if each.rule == "R57")

    assert finding.title == (
        "`return cp.fft.rfft2(blur)` and 1 more line compute the same values 23 times."
    )
    assert finding.saved_ns > 1_000_000
    sources = [line.source for line in finding.lines]
    assert any("blur_kernel(SIDE, width, blur)" in each for each in sources)
    assert not any("random" in each for each in sources)
