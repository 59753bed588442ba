"""``gpuviz prove``: what other settings of a program change."""

from dataclasses import replace

import pytest
from click.testing import CliRunner

from gpuviz.commands import cli, prove
from gpuviz.errors import GpuvizError
from tests.torch_alone import of_torch
from tests.unit.advice.programs import recorded
from tests.unit.replay.segment_programs import small_before_large

# The simulated GPU reads no variable itself.
PROGRAM = """
import os
import gpuviz

gpu = gpuviz.SimulatedGPU(
    memory=320 << 20, real_time=False, settings=os.environ.get("GPUVIZ_ALLOC_CONF", "")
)
for step in range(4):
    made = [gpu.empty((12 + 4 * step) << 20) for _ in range(3)]
    for array in made:
        gpu.launch("work", duration=1e-3, writes=[array])
    gpu.synchronize()
    del array, made
print("done")
"""


@pytest.fixture
def program(tmp_path, monkeypatch):
    monkeypatch.delenv("GPUVIZ_ALLOC_CONF", raising=False)
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_what_a_replay_predicts_of_settings_is_what_runs_with_them_reserve(program):
    done = CliRunner().invoke(cli.commands, ["prove", str(program)])
    lines = done.output.splitlines()

    assert done.exit_code == 0
    assert lines[0].startswith("As it is: ")
    assert "GPUVIZ_ALLOC_CONF=expandable_segments:True" in lines
    predicted = [line.split(": ")[1].strip() for line in lines if "predicted:" in line]
    measured = [line.split(": ")[1].strip() for line in lines if "measured:" in line]
    assert len(predicted) == len(measured) > 0
    for each, other in zip(predicted, measured, strict=True):
        assert other.startswith(f"{each}, ")
    assert "done" not in lines


def test_a_program_with_several_streams_is_tried_with_record_stream(program, tmp_path):
    path = tmp_path / "one.gpuviz"
    on_one = prove.recorded((str(program),), path)
    program.write_text(PROGRAM + "with gpu.Stream():\n    gpu.launch('other', duration=1e-3)\n")
    on_two = prove.recorded((str(program),), path)

    assert [each.options for each in prove.changes(on_one) if each.options] == []
    assert [each.options for each in prove.changes(on_two) if each.options] == [
        ("--record-stream", "auto")
    ]


def test_copies_of_pageable_memory_are_tried_with_pinned_arrays(program, tmp_path):
    program.write_text(
        "import gpuviz\n"
        "gpu = gpuviz.SimulatedGPU(real_time=False)\n"
        "x = gpu.empty(1 << 24)\n"
        "for _ in range(8):\n"
        "    gpu.copy_to_device(x)\n"
        "    gpu.launch('work', duration=1e-4, reads=[x])\n"
        "gpu.synchronize()\n"
    )
    before = prove.recorded((str(program),), tmp_path / "one.gpuviz")
    assert [each for each in prove.changes(before) if each.saved_ns] == []

    # Only a program of CuPy has arrays that the option pins.
    before = before.with_manifest(replace(before.manifest, simulated=False))
    (finding,) = [each for each in before.findings() if each.rule == "R17"]
    (change,) = [each for each in prove.changes(before) if each.saved_ns]

    assert (change.name, change.options) == ("gpuviz run --pin-arrays [R17]", ("--pin-arrays",))
    assert change.saved_ns == finding.saved_ns > 0


def test_a_program_that_fails_or_uses_no_gpu_is_an_error(tmp_path):
    with pytest.raises(GpuvizError, match="ended with 3: stop"):
        prove.recorded(
            ("-c", "import sys; print('stop', file=sys.stderr); sys.exit(3)"),
            tmp_path / "one.gpuviz",
        )
    with pytest.raises(GpuvizError, match="was not recorded"):
        prove.recorded(("-c", "1"), tmp_path / "one.gpuviz")


def test_torchs_allocator_is_set_by_its_own_variable():
    recording = of_torch(recorded(small_before_large))
    proposed = [change.environment for change in prove.changes(recording)]

    assert {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"} in proposed
    assert all("GPUVIZ_ALLOC_CONF" not in each for each in proposed)
