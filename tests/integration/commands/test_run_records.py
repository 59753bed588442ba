"""Recordings of ``gpuviz run``: content, path and messages."""

import pytest

import gpuviz
from gpuviz.commands.startup.sitecustomize import NOTHING_IMPORTED
from tests.integration.commands.programs import (
    GPUVIZ,
    PYTHON,
    SIMULATED,
    TWO_STEPS,
    WITH_CUPY,
    names,
    outcome,
    requested,
    run,
    said,
)


def test_a_program_is_recorded_beside_where_it_runs(folder):
    done = run([GPUVIZ, "run", "train.py", "--steps", 2], folder)
    recording = gpuviz.load(folder / "train.gpuviz")

    assert outcome(done) == (0, "done\n", "")
    assert requested(folder / "train.gpuviz") == [1234567, 7654321]
    assert recording.is_complete
    assert recording.manifest.program == ("train.py", "--steps", "2")
    assert recording.kernels()["count"].to_pylist() == [2]
    [line] = said(done)
    assert line.startswith("wrote train.gpuviz (")
    assert "3 memory events and 2 GPU activities in " in line


def test_call_stacks_begin_in_the_program_and_have_no_frame_of_gpuviz(folder):
    run([GPUVIZ, "run", "train.py"], folder)
    recording = gpuviz.load(folder / "train.gpuviz")
    frames = recording.table("frames").to_pylist()

    assert {frame["filename"] for frame in frames} == {str(folder / "train.py")}
    assert {frame["name"] for frame in frames} == {"<module>", "step"}


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (["-m", "train"], "train.gpuviz"),
        (["-c", TWO_STEPS], "command.gpuviz"),
        (["-"], "stdin.gpuviz"),
        (["./train.py"], "train.gpuviz"),
    ],
)
def test_a_recording_is_called_like_its_program(folder, program, name):
    run([GPUVIZ, "run", *program], folder, text=TWO_STEPS)

    assert names(folder) == [name]
    assert requested(folder / name) == [1234567, 7654321]


def test_recordings_are_numbered_where_no_name_is_given(folder):
    (folder / "train-2.gpuviz.part").mkdir()
    for _ in range(3):
        run([GPUVIZ, "run", "train.py"], folder)

    assert names(folder) == [
        "train-2.gpuviz.part",
        "train-3.gpuviz",
        "train-4.gpuviz",
        "train.gpuviz",
    ]


@pytest.mark.parametrize(
    ("option", "name", "answer"),
    [
        ("--output", "run.html", "record to run.gpuviz, and `gpuviz report run.gpuviz` writes"),
        ("--report", "run.gpuviz", "run.gpuviz is a name for a recording, not for a report;"),
    ],
)
def test_a_name_for_the_other_kind_of_file_stops_the_run_before_it_begins(
    folder, option, name, answer
):
    done = run([GPUVIZ, "run", option, name, "train.py"], folder)

    assert (done.returncode, done.stdout) == (1, "")
    assert answer in said(done)[0]
    assert not (folder / name).exists()


@pytest.mark.parametrize("taken", ["mine.gpuviz", "mine.gpuviz.part", "mine.html"])
def test_a_name_that_is_taken_stops_the_run_before_it_begins(folder, taken):
    (folder / taken).mkdir() if taken.endswith("part") else (folder / taken).write_text("mine")
    files = ["--output", "mine.gpuviz", "--report", "mine.html"]
    refused = run([GPUVIZ, "run", *files, "train.py"], folder)
    forced = run([GPUVIZ, "run", "--force", *files, "train.py"], folder)

    assert outcome(refused) == (1, "", "")
    assert taken in said(refused)[0]
    assert "--force" in said(refused)[0]
    assert outcome(forced)[:2] == (0, "done\n")
    assert requested(folder / "mine.gpuviz") == [1234567, 7654321]
    assert requested(folder / "mine.html") == [1234567, 7654321]
    assert names(folder) == ["mine.gpuviz"]


def test_a_folder_that_does_not_exist_stops_the_run_before_it_begins(folder):
    done = run([GPUVIZ, "run", "--output", "none/mine.gpuviz", "train.py"], folder)

    assert outcome(done) == (1, "", "")
    assert said(done) == [f"The folder {folder}/none of mine.gpuviz does not exist."]


def test_the_report_holds_the_recording(folder):
    done = run([GPUVIZ, "run", "--report", "run.html", "train.py"], folder)

    assert outcome(done)[:2] == (0, "done\n")
    assert requested(folder / "run.html") == requested(folder / "train.gpuviz")
    assert f"Wrote {folder}/run.html\n" in done.stderr


@pytest.mark.parametrize(
    ("option", "table", "rows"),
    [
        ("--no-stacks", "frames", 0),
        ("--no-streams", "activities", 0),
        ("--no-launch-sites", "api_calls", 0),
        ("--no-launch-blocks", "launch_blocks", 0),
        ("--budget=2%", "unrecorded_spans", 0),
        ("--quiet", "activities", 2),
    ],
)
def test_options_choose_what_is_recorded(folder, option, table, rows):
    done = run([GPUVIZ, "run", option, "train.py"], folder)
    recording = gpuviz.load(folder / "train.gpuviz")

    assert recording.table(table).num_rows == rows
    assert recording.table("memory_events").num_rows == 3
    assert len(said(done)) == (0 if option == "--quiet" else 1)


def test_what_is_recorded_last_is_kept_where_the_number_of_events_is_bounded(folder):
    (folder / "long.py").write_text(
        f"{SIMULATED}for n in range(300):\n    step(n + 1)\n    time.sleep(0.005)\n"
    )
    run([GPUVIZ, "run", "--max-events", 1, "long.py"], folder)

    assert requested(folder / "long.gpuviz")[-1] == 300


def test_a_program_that_records_itself_does_so(folder):
    (folder / "self.py").write_text(
        f"{SIMULATED}kept = step(1111)\n"
        "with gpuviz.record('own.gpuviz', device=gpu) as recorder:\n    step(2222)\n"
        "print(recorder.recording.table('memory_events').num_rows, flush=True)\n"
    )
    done = run([GPUVIZ, "run", "self.py"], folder)

    assert done.returncode == 0
    assert 2222 in requested(folder / "own.gpuviz")
    assert requested(folder / "self.gpuviz") == [1111]
    assert said(done)[0] == "the program started its own recording: gpuviz run recorded until then"


def test_a_program_that_does_nothing_before_its_own_recording_is_recorded_only_by_itself(folder):
    (folder / "self.py").write_text(
        f"{SIMULATED}gpuviz.record('own.gpuviz', device=gpu).start()\nstep(2222)\n"
        "gpuviz.Recorder.active().stop()\ngpu = gpuviz.SimulatedGPU()\nstep(3333)\n"
    )
    done = run([GPUVIZ, "run", "--report", "run.html", "self.py"], folder)

    assert requested(folder / "own.gpuviz") == [2222]
    assert names(folder) == ["own.gpuviz"]
    assert not (folder / "run.html").exists()
    assert "; ".join(said(done)) == (
        "nothing was recorded: the program records itself, to own.gpuviz; "
        "`gpuviz view own.gpuviz` shows it"
    )


def test_ranges_of_the_program_are_in_the_recording(folder):
    (folder / "ranges.py").write_text(f"{SIMULATED}with gpuviz.range('load'):\n    step(1234)\n")
    run([GPUVIZ, "run", "ranges.py"], folder)
    recording = gpuviz.load(folder / "ranges.gpuviz")

    assert "load" in recording.table("strings")["text"].to_pylist()
    assert recording.table("ranges").num_rows == 1


def test_children_of_the_program_are_not_recorded(folder):
    (folder / "forks.py").write_text(
        f"{SIMULATED.replace('gpu = ', 'child = os.fork()' + chr(10) + 'gpu = ')}"
        "step(1111 if child else 2222)\n"
        "if child:\n    print(os.waitstatus_to_exitcode(os.wait()[1]))\n"
    )
    done = run([GPUVIZ, "run", "forks.py"], folder)

    assert outcome(done) == (0, "0\n", "")
    assert names(folder) == ["forks.gpuviz"]
    assert requested(folder / "forks.gpuviz") == [1111]


@pytest.mark.parametrize(
    ("program", "sentence"),
    [
        ("pass", f"nothing was recorded: {NOTHING_IMPORTED}"),
        (
            "import gpuviz.simulation.gpu",
            "nothing was recorded: the program created no SimulatedGPU",
        ),
        ("import cupy", WITH_CUPY),
    ],
)
def test_a_program_that_uses_no_gpu_is_told_why_nothing_was_recorded(folder, program, sentence):
    (folder / "script.py").write_text(f"{program}\nprint(json := 5)\nraise SystemExit(3)")
    done = run([GPUVIZ, "run", "script.py"], folder)

    assert outcome(done) == (3, "5\n", "")
    assert said(done) == [sentence]
    assert names(folder) == []


@pytest.mark.parametrize("program", [["missing.py"], ["-m", "missing"], ["."]])
def test_a_program_that_python_does_not_find_is_left_to_python(folder, program):
    done = run([GPUVIZ, "run", *program], folder)

    assert outcome(done) == outcome(run([PYTHON, *program], folder))
    assert said(done) == []


def test_a_name_that_another_program_takes_meanwhile_gets_a_number(folder):
    (folder / "train.py").write_text(
        "import os\nfrom gpuviz.commands.run_options import RunOptions\n"
        "free = RunOptions.free_path\n"
        "def taken(options):\n    path = free(options)\n    RunOptions.free_path = free\n"
        "    os.mkdir(f'{path}.part')\n    return path\n"
        f"RunOptions.free_path = taken\n{TWO_STEPS}"
    )
    done = run([GPUVIZ, "run", "train.py"], folder)
    [wrote] = said(done)

    assert outcome(done) == (0, "done\n", "")
    assert wrote.startswith("wrote train-2.gpuviz")
    assert requested(folder / "train-2.gpuviz") == [1234567, 7654321]


def test_a_disk_that_is_full_moves_the_recording_elsewhere(folder):
    (folder / "train.py").write_text(
        f"import resource, signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n{TWO_STEPS}"
        "def grow(_):\n    resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))\n"
        "most = resource.RLIM_INFINITY\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100, most))\n"
        "saved = gpuviz.Recording.save\n"
        "gpuviz.Recording.save = lambda *them, **how: (grow(0), saved(*them, **how))[1]\n"
    )
    done = run([GPUVIZ, "run", "train.py"], folder)
    [reason, wrote] = said(done)

    assert outcome(done) == (0, "done\n", "")
    assert reason == f"{folder}/train.gpuviz: cannot be written (File too large)"
    assert requested(wrote.split()[1]) == [1234567, 7654321]
