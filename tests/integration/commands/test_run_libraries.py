"""Recordings of programs that use the GPU without CuPy, and what recording imports."""

import json
import subprocess
from itertools import cycle

import pytest

import gpuviz
from gpuviz.commands.startup.sitecustomize import AT_FIRST_USE
from tests.integration.commands.programs import (
    GPUVIZ,
    PYTHON,
    TWO_STEPS,
    WITH_CUPY,
    imitated_cuda,
    names,
    outcome,
    requested,
    run,
    said,
)

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
