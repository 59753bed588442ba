"""Recordings of ``gpuviz run``: content, path and messages."""

import json
import signal
import subprocess
from itertools import cycle

import pytest

import gpuviz
from gpuviz.commands.startup.sitecustomize import AT_FIRST_USE, NOTHING_IMPORTED
from gpuviz.frameworks.shared_pool import has_driver
from tests.integration.commands.programs import (
    GPUVIZ,
    PYTHON,
    SIMULATED,
    UNTIL_WRITTEN,
    imitated_cuda,
    names,
    outcome,
    run,
    said,
)

WITH_CUPY = (
    "nothing was recorded: the program allocated nothing with CuPy"
    if has_driver()
    else "not recorded: no NVIDIA driver found (libcuda.so.1 is missing)"
)
TWO_STEPS = f"{SIMULATED}kept = [step(1234567), step(7654321)]\nprint('done')\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(TWO_STEPS)
    return tmp_path


def requested(path):
    recording = gpuviz.load(path)
    sizes = recording.table("memory_events")["requested_size"].to_pylist()
    actions = recording.table("memory_events")["action"].to_pylist()
    return [size for size, action in zip(sizes, actions, strict=True) if action == "alloc"]


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


TORCH = """
from types import SimpleNamespace
waiting = []
cuda = SimpleNamespace(_lazy_call=waiting.append)
def use_gpu():
    for call in waiting:
        call()
"""


@pytest.mark.parametrize(
    ("use", "sentence"),
    [
        ("", "nothing was recorded: the program did not use the GPU"),
        # Recording fails then, since the driver has no functions.
        ("torch.use_gpu()", "not recorded: "),
    ],
)
def test_a_program_that_uses_only_torch_is_recorded_when_it_uses_the_gpu(folder, use, sentence):
    driver = ["cc", "-shared", "-Wl,-soname,libcuda.so.1", "-o", folder / "libcuda.so.1"]
    subprocess.run([*driver, "-xc", "/dev/null"], check=True)
    (folder / "torch.py").write_text(TORCH)
    (folder / "script.py").write_text(f"import torch\n{use}\nprint(5)")
    done = run([GPUVIZ, "run", "script.py"], folder, environment={"LD_LIBRARY_PATH": str(folder)})

    assert outcome(done) == (0, "5\n", "")
    (told,) = said(done)
    assert told.startswith(sentence)


LIBRARY = "import ctypes\nkernel, launch = None, ctypes.CDLL('libcupti.so.13').fake_launch\n"


@pytest.fixture(scope="module")
def imitations(tmp_path_factory):
    """A folder with a driver and a CUPTI that need no GPU."""
    return imitated_cuda(tmp_path_factory.mktemp("imitations"))


@pytest.mark.parametrize(
    ("module", "allocator"), [*zip(AT_FIRST_USE, cycle(("caching", "observe")), strict=False)]
)
def test_kernels_of_any_library_are_recorded_with_their_lines(
    folder, imitations, module, allocator
):
    path = folder / f"{module.replace('.', '/')}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(LIBRARY)
    (folder / "script.py").write_text(
        f"from {module} import launch\n"
        "from threading import Thread\n"
        "def step():\n    launch(0)\n    launch(0)\n"
        "step()\nThread(target=step).start()\n"
    )

    options = ["--observe"] if allocator == "observe" else []
    environment = {"LD_LIBRARY_PATH": str(imitations)}
    done = run([GPUVIZ, "run", *options, "script.py"], folder, environment=environment)

    assert outcome(done) == (0, "", "")
    recording = gpuviz.load(folder / "script.gpuviz")
    assert recording.manifest.allocator == allocator
    kernels = recording.kernels(by="line").to_pylist()
    assert [row["count"] for row in kernels] == [2, 2]
    assert len(set(recording.table("api_calls")["thread"].to_pylist())) == 2


@pytest.mark.parametrize(
    ("program", "module"),
    [("from warp import launch", "warp"), ("import torch, cuda.core", "cuda/core")],
)
def test_a_module_of_the_program_or_of_another_library_begins_nothing(
    folder, imitations, program, module
):
    (folder / "cuda").mkdir()
    (folder / f"{module}.py").write_text(LIBRARY.replace("kernel, ", "unknown, "))
    (folder / "torch.py").write_text(TORCH)
    (folder / "script.py").write_text(program)
    environment = {"LD_LIBRARY_PATH": str(imitations)}
    done = run([GPUVIZ, "run", "script.py"], folder, environment=environment)

    assert outcome(done) == (0, "", "")
    (sentence,) = said(done)
    assert sentence.startswith("nothing was recorded: ")
    assert names(folder) == []


def test_cupy_fails_with_its_own_traceback(folder):
    (folder / "script.py").write_text("import cupy\ncupy.cuda.Device(99).use()")
    plain = run([PYTHON, "script.py"], folder)
    recorded = run([GPUVIZ, "run", "script.py"], folder)

    assert outcome(recorded) == outcome(plain)
    assert plain.returncode == 1
    assert said(recorded) == [WITH_CUPY]


def test_info_of_what_was_recorded_can_be_read_by_programs(folder):
    run([GPUVIZ, "run", "train.py"], folder)
    facts = json.loads(run([GPUVIZ, "info", "--json", "train.gpuviz"], folder).stdout)

    assert facts["program"] == ["train.py"]
    assert facts["devices"][0]["allocated_bytes"]["peak"] >= 1234567 + 7654321


def test_a_report_of_memory_alone_does_not_import_arrows_functions(folder):
    """Their import would take a tenth of such a report's time."""
    run([GPUVIZ, "run", "train.py"], folder)
    run([GPUVIZ, "convert", "train.gpuviz", "train.pickle"], folder)

    done = run(
        [GPUVIZ, "report", "train.pickle"], folder, environment={"PYTHONPROFILEIMPORTTIME": "1"}
    )

    assert (folder / "train.html").exists()
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "pyarrow.lib" in imported
    assert not {"pyarrow.compute", "pyarrow._compute"} & imported


def test_recording_imports_neither_pandas_nor_arrows_functions(folder):
    """Their imports would take longer than everything else that recording adds to a program."""
    (folder / "pandas.py").write_text("def isna(value): return value != value\n")
    (folder / "train.py").write_text(
        f"{TWO_STEPS}gpu.copy_to_device(kept[0])\n"
        "with gpu.Stream():\n    gpu.copy_to_host(kept[1])\n"
        "with gpuviz.range('end'):\n    gpu.synchronize()\n"
    )
    environment = {"PYTHONPATH": str(folder), "PYTHONPROFILEIMPORTTIME": "1"}

    done = run([GPUVIZ, "run", "train.py"], folder, environment=environment)

    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert {"pyarrow.lib", "gpuviz.formats.gpuviz"} <= imported
    assert not {"pandas", "pyarrow.compute", "pyarrow._compute", "numpy.ma"} & imported
    recording = gpuviz.load(folder / "train.gpuviz")
    assert requested(folder / "train.gpuviz") == [1234567, 7654321]
    assert recording.derived["idle_gaps"].num_rows
    assert len(recording.table("streams")) == 2
    assert len(recording.table("ranges")) == 1
