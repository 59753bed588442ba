"""Recordings of each process of a program: ``gpuviz run --children`` and ``GPUVIZ_RECORD``."""

import os
import sys
from textwrap import indent

import pytest

import gpuviz
from tests.integration.commands.programs import GPUVIZ, PYTHON, UNTIL_WRITTEN, outcome, run, said

# Child processes import the module again.
TREE = """\
import multiprocessing, os, subprocess, sys, time
import gpuviz

def step(size):
    gpu = gpuviz.SimulatedGPU(memory=1 << 30)
    array = gpu.empty(size)
    gpu.launch("step", writes=[array], duration=1e-4)
    gpu.null_stream.synchronize()
"""
IN_PROCESS = """
if __name__ == "__main__":
    child = multiprocessing.get_context(sys.argv[1]).Process(target=step, args=(1234567,))
    child.start()
    child.join()
    sys.exit(child.exitcode)
"""
IN_PROGRAM = """
if len(sys.argv) > 1:
    step(1234567)
else:
    os.mkdir("elsewhere")
    subprocess.run([sys.executable, os.path.abspath(__file__), "again"], cwd="elsewhere")
    step(7654321)
"""
KILLED = f"""
if len(sys.argv) > 1:
    step(1234567)
{indent(UNTIL_WRITTEN, "    ")}
    os.kill(os.getpid(), 9)
subprocess.run([sys.executable, __file__, "again"])
"""


def requested(path):
    events = gpuviz.load(path).table("memory_events")
    sizes, actions = events["requested_size"].to_pylist(), events["action"].to_pylist()
    return [size for size, action in zip(sizes, actions, strict=True) if action == "alloc"]


def recorded(folder):
    return {path.name: requested(path) for path in folder.iterdir()}


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_a_process_of_multiprocessing_has_a_file_of_its_own(tmp_path, method):
    (tmp_path / "tree.py").write_text(TREE + IN_PROCESS)

    done = run([GPUVIZ, "run", "--children", "-o", "ranks", "tree.py", method], tmp_path)
    [path] = (tmp_path / "ranks").iterdir()

    assert outcome(done) == (0, "", "")
    assert requested(path) == [1234567]
    assert gpuviz.load(path).is_complete
    assert len(said(done)) == 1
    assert said(done)[0].startswith(f"wrote ranks/{path.name} (")


def test_a_program_and_one_that_it_starts_elsewhere_record_to_one_folder(tmp_path):
    (tmp_path / "tree.py").write_text(TREE + IN_PROGRAM)

    done = run([GPUVIZ, "run", "--children", "--quiet", "tree.py"], tmp_path)
    found = recorded(tmp_path / "tree.recordings")

    assert outcome(done) == (0, "", "")
    assert sorted(found.values()) == [[1234567], [7654321]]
    assert said(done) == []


def test_a_variable_records_each_process_under_its_host_id_and_rank(tmp_path):
    (tmp_path / "tree.py").write_text(TREE + "print(os.getpid())\nstep(1234567)\n")
    launch = {"RANK": "3", "WORLD_SIZE": "8"}

    done = run([PYTHON, "tree.py"], tmp_path, environment={"GPUVIZ_RECORD": "to/ranks"} | launch)
    [path] = (tmp_path / "to" / "ranks").iterdir()
    manifest = gpuviz.load(path).manifest

    assert path.name == f"{os.uname().nodename}-{done.stdout.strip()}-rank3.gpuviz"
    assert manifest.host == os.uname().nodename
    assert manifest.launch == {"rank": 3, "ranks": 8}


@pytest.mark.parametrize(
    ("environment", "launch"),
    [
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4"}, {"rank": 1, "ranks": 4}),
        ({"PMI_RANK": "2", "PMI_SIZE": "4"}, {"rank": 2, "ranks": 4}),
        ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "4"}, {"rank": 3, "ranks": 4}),
        ({"SLURM_PROCID": "0", "OMPI_COMM_WORLD_RANK": "1"}, {"rank": 1}),
        ({"RANK": "first"}, {}),
    ],
)
def test_a_recording_knows_the_rank_that_a_launcher_gave(tmp_path, environment, launch):
    program = [sys.executable, "-c", TREE + "step(1)\n"]

    run(program, tmp_path, environment={"GPUVIZ_RECORD": "ranks"} | environment)
    [path] = (tmp_path / "ranks").iterdir()

    assert gpuviz.load(path).manifest.launch == launch


def test_a_process_that_uses_no_gpu_leaves_no_file(tmp_path):
    done = run([GPUVIZ, "run", "--children", "-o", "ranks", "-c", "import gpuviz"], tmp_path)

    assert outcome(done) == (0, "", "")
    assert said(done) == []
    assert list((tmp_path / "ranks").iterdir()) == []


def test_a_killed_process_leaves_a_part(tmp_path):
    (tmp_path / "tree.py").write_text(TREE + KILLED)

    run([GPUVIZ, "run", "--children", "-o", "ranks", "tree.py"], tmp_path)
    [part] = (tmp_path / "ranks").iterdir()

    assert part.name.endswith(".gpuviz.part")
    assert requested(part) == [1234567]
    assert not gpuviz.load(part).is_complete


def test_options_reach_every_process(tmp_path):
    (tmp_path / "tree.py").write_text(TREE + IN_PROGRAM)

    run([GPUVIZ, "run", "--children", "--no-streams", "-o", "ranks", "tree.py"], tmp_path)
    counts = [gpuviz.load(path).table("activities").num_rows for path in tmp_path.glob("ranks/*")]

    assert counts == [0, 0]


def test_a_process_that_records_itself_is_left_alone(tmp_path):
    program = f"{TREE}with gpuviz.record('own.gpuviz', device=gpuviz.SimulatedGPU()):\n    pass\n"

    run([PYTHON, "-c", program], tmp_path, environment={"GPUVIZ_RECORD": "ranks"})

    assert (tmp_path / "own.gpuviz").exists()


def test_what_judges_or_shows_one_process_contradicts_children(tmp_path):
    for option in (["--live"], ["--report", "r.html"], ["--fail", "--hazards"], ["--force"]):
        done = run([GPUVIZ, "run", "--children", *option, "-c", "pass"], tmp_path)

        assert done.returncode == 2
        assert f"--children contradicts {option[0]}." in done.stderr


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "ranks").write_text("")

    done = run([GPUVIZ, "run", "--children", "-o", "ranks", "-c", "pass"], tmp_path)

    assert done.returncode == 1
    assert said(done) == [f"{tmp_path / 'ranks'} is a file; --children needs a folder."]


def test_the_recordings_of_a_run_are_merged(tmp_path):
    (tmp_path / "tree.py").write_text(TREE + IN_PROGRAM)
    run([GPUVIZ, "run", "--children", "-o", "ranks", "tree.py"], tmp_path)

    done = run([GPUVIZ, "merge", "ranks", "-o", "all.gpuviz"], tmp_path)
    merged = gpuviz.load(tmp_path / "all.gpuviz")
    again = run([GPUVIZ, "merge", "ranks", "-o", "all.gpuviz"], tmp_path)

    assert done.returncode == 0
    lines = done.stdout.splitlines()
    names = [f"{each.name} GPU 0" for each in merged.processes]
    assert lines[:4] == [
        "simulated GPU",
        f"  {names[0]}: peak 1.18 MiB allocated, 20.0 MiB reserved",
        "simulated GPU",
        f"  {names[1]}: peak 7.30 MiB allocated, 20.0 MiB reserved",
    ]
    assert lines[-1] == "Wrote all.gpuviz"
    assert requested(tmp_path / "all.gpuviz") == [1234567, 7654321]
    # The child ran first, and ended before its parent began to record.
    first, second = merged.table("processes").to_pylist()
    assert first["end"] < second["start"]
    assert again.returncode == 1
    assert said(again) == ["all.gpuviz exists; choose another name, or use --force to replace it."]


def test_a_folder_without_recordings_cannot_be_merged(tmp_path):
    done = run([GPUVIZ, "merge", ".", "-o", "all.gpuviz"], tmp_path)

    assert done.returncode == 1
    assert said(done) == [". has no recordings (*.gpuviz or *.gpuviz.part)."]
