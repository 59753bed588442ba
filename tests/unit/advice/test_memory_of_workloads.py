"""What the shipped recordings say about the memory of their programs."""

from pathlib import Path

import pytest

import gpuviz

RECORDINGS = Path(gpuviz.__file__).parent / "commands" / "recordings"
MIB = 1 << 20


def memory_findings(workload):
    """Return rule, line and whole MiB of each finding about memory."""
    found = gpuviz.load(RECORDINGS / f"{workload}.gpuviz").findings()
    return [
        (each.rule, each.lines[0].source, each.saved_bytes // MIB)
        for each in found
        if each.saved_bytes
    ]


@pytest.mark.parametrize(
    ("workload", "expected"),
    [
        # The matrix is assembled within lines of cupyx.scipy.sparse.
        ("conjugate_gradient", []),
        ("fft_filter", [("R45", "self.spectrum = fft.rfft(signal, axis=1, plan=forward)", 13)]),
        (
            "image_pipeline",
            [
                (
                    "R45",
                    "image = NOISE * random.standard_normal((side, side), dtype=cp.float32)",
                    26,
                ),
                ("R45", "background = ndimage.gaussian_filter(image, sigma=SPACING)", 26),
                ("R45", "flat = image - background", 26),
            ],
        ),
        ("kmeans", [("R08", "distances = cp.square(differences).sum(axis=2)", 97)]),
        ("monte_carlo", [("R46", "samples = cp.concatenate(payoffs)", 26)]),
    ],
)
def test_each_workload_has_the_findings_that_its_program_explains(workload, expected):
    assert memory_findings(workload) == expected
