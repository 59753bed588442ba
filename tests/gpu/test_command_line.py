"""``gpuviz run`` and ``gpuviz doctor`` with a GPU."""

import ctypes
import json

import pytest

import gpuviz
from gpuviz.doctor.examination import examine
from gpuviz.doctor.machine import Machine
from tests.integration.commands.programs import GPUVIZ, PYTHON, outcome, run, said

pytestmark = pytest.mark.gpu

PROGRAM = """\
import sys
import cupy

def work(size):
    return cupy.arange(size, dtype=cupy.float32).sum()

print(int(work(100_000)), sys.argv[1:])
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(PROGRAM)
    return tmp_path


def recorded(folder, program, *options):
    """Run a program by python and by gpuviz; return its recording after comparing both."""
    (folder / "program.py").write_text(program)
    plain = run([PYTHON, "program.py"], folder)
    done = run([GPUVIZ, "run", *options, "program.py"], folder)

    assert outcome(done) == outcome(plain)
    return gpuviz.load(folder / "program.gpuviz")


def sizes(recording):
    rows = recording.table("memory_events").to_pylist()
    return [row["requested_size"] for row in rows if row["action"] == "alloc"]


def test_a_program_is_recorded_from_its_first_allocation(folder):
    done = run([GPUVIZ, "run", "train.py", "--steps", 3], folder)
    recording = gpuviz.load(folder / "train.gpuviz")
    frames = recording.table("frames").to_pylist()

    assert outcome(done)[0::2] == (0, "")
    assert done.stdout.endswith("['--steps', '3']\n")
    assert sizes(recording)[0] == 400_000
    assert recording.manifest.allocator == "caching"
    assert recording.kernels()["count"].to_pylist() != []
    assert f"{folder}/train.py" in {frame["filename"] for frame in frames}
    assert [frame["filename"] for frame in frames if "/gpuviz/" in frame["filename"]] == []


@pytest.mark.parametrize(
    ("choice", "name"),
    [
        ("cupy.cuda.MemoryAsyncPool().malloc", "MemoryAsyncPool"),
        ("cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc", "MemoryPool"),
    ],
)
def test_an_allocator_that_the_program_chooses_stays_its_allocator(folder, choice, name):
    program = (
        f"import cupy\ncupy.cuda.set_allocator({choice})\n"
        "x = cupy.ones(1000)\nprint(cupy.cuda.get_allocator is not None, float(x.sum()))\n"
    )
    recording = recorded(folder, program)

    assert recording.manifest.allocator == "observe"
    assert name in recording.manifest.allocator_name
    assert 8000 in sizes(recording)


def test_observe_leaves_the_pool_in_place(folder):
    program = (
        "import cupy\nx = cupy.ones(1000)\n"
        "print(cupy.get_default_memory_pool().used_bytes() >= 8000)\n"
    )
    recording = recorded(folder, program, "--observe")

    assert recording.manifest.allocator == "observe"
    assert sizes(recording)[0] == 8000


@pytest.mark.parametrize("way", ["fork", "spawn", "forkserver"])
def test_workers_use_the_gpu_as_ever_and_are_not_recorded(folder, way):
    program = (
        "import multiprocessing as m\nimport cupy\n"
        "def f(n):\n    return float(cupy.ones(n).sum())\n"
        "if __name__ == '__main__':\n"
        f"    with m.get_context('{way}').Pool(2) as pool:\n"
        "        print(pool.map(f, [10, 20, 30]))\n"
        "    print(f(40))\n"
    )
    recording = recorded(folder, program)

    assert sizes(recording)[0] == 320
    assert 80 not in sizes(recording)


def test_a_program_that_records_itself_does_so(folder):
    program = (
        "import cupy, gpuviz\nx = cupy.ones(1000)\n"
        "with gpuviz.record('own.gpuviz'):\n    y = cupy.ones(3000)\n"
        "print(float(y.sum()), float(x.sum()))\n"
    )
    (folder / "self.py").write_text(program)
    done = run([GPUVIZ, "run", "self.py"], folder)

    assert outcome(done) == (0, "3000.0 1000.0\n", "")
    assert sizes(gpuviz.load(folder / "self.gpuviz"))[0] == 8000
    assert 24000 in sizes(gpuviz.load(folder / "own.gpuviz"))


@pytest.mark.parametrize("allocator", ["caching", "observe"])
def test_a_program_that_records_itself_from_the_start_is_left_alone(folder, allocator):
    program = (
        "import cupy, gpuviz\nbefore = cupy.cuda.get_allocator()\n"
        f"with gpuviz.record('own.gpuviz', allocator={allocator!r}):\n    y = cupy.ones(3000)\n"
        "print(cupy.cuda.get_allocator() == before, float(y.sum()))\n"
    )
    (folder / "self.py").write_text(program)
    done = run([GPUVIZ, "run", "self.py"], folder)

    assert outcome(done) == (0, "True 3000.0\n", "")
    assert said(done)[0].startswith(
        "nothing was recorded: the program records itself, to own.gpuviz"
    )
    assert 24000 in sizes(gpuviz.load(folder / "own.gpuviz"))
    assert not (folder / "self.gpuviz").exists()


def test_a_program_out_of_memory_ends_with_cupys_exception(folder):
    (folder / "full.py").write_text("import cupy\nx = cupy.ones(10)\ncupy.empty(1 << 50)\n")
    done = run([GPUVIZ, "run", "full.py"], folder)

    assert done.returncode == 1
    assert "cupy.cuda.memory.OutOfMemoryError" in done.stderr
    assert "gpuviz/frameworks" not in done.stderr
    assert gpuviz.load(folder / "full.gpuviz").is_complete


def test_live_numbers_and_the_report_come_with_it(folder):
    done = run([GPUVIZ, "run", "--report", "run.html", "train.py"], folder)

    assert done.returncode == 0
    assert sizes(gpuviz.load(folder / "run.html")) == sizes(gpuviz.load(folder / "train.gpuviz"))
    assert "wrote train.gpuviz (" in said(done)[0]


def test_the_doctor_finds_that_this_machine_can_record(folder):
    done = run([GPUVIZ, "doctor", "--try", "--json"], folder)
    told = json.loads(done.stdout)
    levels = {finding["topic"]: finding["level"] for finding in told["findings"]}

    assert (done.returncode, told["can_record"]) == (0, True)
    assert levels["driver"] == levels["GPUs"] == levels["CuPy"] == levels["CUDA"] == "ok"
    assert levels["CUPTI"] == levels["attempt"] == "ok"


def test_the_doctor_makes_no_context(folder):
    program = (
        "import ctypes\nfrom gpuviz.doctor.examination import examine\n"
        "from gpuviz.doctor.machine import Machine\n"
        "list(examine(Machine()))\n"
        "driver = ctypes.CDLL('libcuda.so.1')\n"
        "flags, active = ctypes.c_uint(), ctypes.c_int(-1)\n"
        "driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active))\n"
        "print(active.value)\n"
    )
    done = run([PYTHON, "-c", program], folder)

    assert (done.returncode, done.stdout) == (0, "0\n")


def test_the_doctor_names_the_gpus_of_the_driver():
    driver = ctypes.CDLL("libcuda.so.1")
    driver.cuInit(0)
    count = ctypes.c_int()
    driver.cuDeviceGetCount(ctypes.byref(count))
    [found] = [each.found for each in examine(Machine()) if each.topic == "GPUs"]

    assert len(found.split(", ")) >= count.value >= 1
