"""Recordings of programs that fail, are interrupted or end in an unusual way."""

import signal
import subprocess

import pytest

import gpuviz
from tests.integration.commands.programs import (
    GPUVIZ,
    PYTHON,
    SIMULATED,
    TWO_STEPS,
    UNTIL_WRITTEN,
    outcome,
    requested,
    run,
    said,
)


def test_a_program_that_raises_has_its_own_traceback_and_a_whole_recording(folder):
    text = "def f():\n    raise ValueError(step(1234))\n\nf()\n"
    (folder / "fails.py").write_text(
        SIMULATED + text.replace("(step(1234))", "(step(1234).nbytes)")
    )
    plain = run([PYTHON, "fails.py"], folder)
    recorded = run([GPUVIZ, "run", "fails.py"], folder)

    assert outcome(recorded) == outcome(plain)
    assert plain.returncode == 1
    assert requested(folder / "fails.gpuviz") == [1234]
    recording = gpuviz.load(folder / "fails.gpuviz")
    assert recording.is_complete
    assert (
        "The recording ended with ValueError, and has what was done up to then."
    ) in recording.notes


def test_an_interrupted_program_leaves_a_whole_recording(folder):
    (folder / "long.py").write_text(
        f"{SIMULATED}kept = step(1234)\nprint('ready', flush=True)\ntime.sleep(60)\n"
    )
    with subprocess.Popen(
        [GPUVIZ, "run", "long.py"],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)

    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in errors
    assert requested(folder / "long.gpuviz") == [1234]


@pytest.mark.parametrize(
    ("end", "code"),
    [("os._exit(7)", 7), ("os.kill(os.getpid(), 9)", -9), ("os.kill(os.getpid(), 15)", -15)],
)
def test_a_program_that_ends_at_once_leaves_a_part_that_loads(folder, end, code):
    (folder / "dies.py").write_text(f"{SIMULATED}kept = step(1234)\n{UNTIL_WRITTEN}{end}\n")
    done = run([GPUVIZ, "run", "dies.py"], folder)
    converted = run([GPUVIZ, "convert", "dies.gpuviz.part", "dies.gpuviz"], folder)

    assert done.returncode == code
    assert converted.returncode == 0
    assert requested(folder / "dies.gpuviz.part") == [1234]
    assert requested(folder / "dies.gpuviz") == [1234]


def test_a_program_that_changes_its_folder_is_recorded_where_it_began(folder):
    (folder / "moves.py").write_text(f"import os\nos.chdir('/')\n{TWO_STEPS}")
    run([GPUVIZ, "run", "moves.py"], folder)

    assert requested(folder / "moves.gpuviz") == [1234567, 7654321]


def test_a_folder_that_is_gone_at_the_end_does_not_matter(folder):
    moves = "import os\nos.mkdir('gone')\nos.chdir('gone')\nos.rmdir('../gone')\n"
    (folder / "moves.py").write_text(moves + TWO_STEPS)
    done = run([GPUVIZ, "run", "moves.py"], folder)

    assert said(done)[0].startswith(f"wrote {folder}/moves.gpuviz (")
    assert requested(folder / "moves.gpuviz") == [1234567, 7654321]


def test_without_a_stderr_the_program_is_recorded_all_the_same(folder):
    script = f"'{GPUVIZ}' run --live --report run.html train.py 2>&-"
    done = run(["bash", "-c", script], folder)

    assert (done.returncode, done.stdout) == (0, "done\n")
    assert requested(folder / "train.gpuviz") == [1234567, 7654321]
    assert requested(folder / "run.html") == [1234567, 7654321]
