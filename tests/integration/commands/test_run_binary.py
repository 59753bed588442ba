"""Compiled programs under ``gpuviz run``."""

import sys

import pytest

import gpuviz
from tests.integration.commands.programs import GPUVIZ, SIMULATED, names, run


@pytest.mark.parametrize("program", ["env", sys.executable])
def test_a_compiled_program_is_not_recorded_and_a_way_out_is_named(tmp_path, program):
    done = run([GPUVIZ, "run", program, "train.py"], tmp_path)

    assert (done.returncode, done.stdout) == (1, "")
    assert f"{program} is a compiled program" in done.stderr
    assert "--children" in done.stderr
    assert names(tmp_path) == []


def test_a_compiled_launcher_starts_recorded_processes_of_python(tmp_path):
    (tmp_path / "train.py").write_text(f"{SIMULATED}step(1234)\n")
    command = [GPUVIZ, "run", "--children", "env", "EXTRA=1", sys.executable, "train.py"]
    done = run(command, tmp_path)

    assert done.returncode == 0
    (found,) = (tmp_path / "env.recordings").iterdir()
    events = gpuviz.load(found).table("memory_events")
    assert 1234 in events["requested_size"].to_pylist()
