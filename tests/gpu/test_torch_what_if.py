"""What `what_if` predicts for a program of PyTorch, against the program under these settings."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpuviz
from tests.gpu.shown_findings import tell

PROGRAMS = ("transformer", "convolutions", "growing")
SETTINGS = (
    "",
    "expandable_segments:True",
    "max_split_size_mb:20",
    "max_split_size_mb:128",
    "roundup_power2_divisions:4",
    "expandable_segments:True,roundup_power2_divisions:8",
    "large_segment_size_mb:64",
)
pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed"
)


def run(program, settings, snapshot=None):
    """Return the peaks of allocated and reserved bytes, and the bytes of the device."""
    command = [sys.executable, str(Path(__file__).with_name("torch_program.py")), program]
    done = subprocess.run(
        [*command, *([] if snapshot is None else [str(snapshot)])],
        env={**os.environ, "PYTORCH_CUDA_ALLOC_CONF": settings},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_predicted_peaks_are_those_of_the_program(program, tmp_path, pytestconfig):
    snapshot = tmp_path / "torch.pickle"
    capacity = run(program, "", snapshot)[2]
    recording = gpuviz.load(snapshot)
    rows = recording.what_if(list(SETTINGS), capacity=capacity).slice(1).to_pylist()
    measured = [run(program, settings)[:2] for settings in SETTINGS]
    predicted = [[row["peak_allocated"], row["peak_reserved"]] for row in rows]
    table = [
        f"{program:12} {settings or 'default':50} {a[1]:>12} {b[1]:>12}"
        for settings, a, b in zip(SETTINGS, predicted, measured, strict=True)
    ]
    tell(pytestconfig, f"torch_what_if_{program}", "\n".join(table))

    for settings, found, expected in zip(SETTINGS, predicted, measured, strict=True):
        # Of equal blocks the one with the lowest address is taken, and these differ. That changes
        # which blocks merge later; it has changed what is reserved only under max_split_size_mb.
        tolerance = 0.03 if "max_split" in settings else 0.0
        assert found[0] == pytest.approx(expected[0], rel=0.01), settings
        assert found[1] == pytest.approx(expected[1], rel=tolerance, abs=0), settings
