"""Uses an installed gpuviz as its first user would, in an environment with nothing else.

Usage: python clean_environment.py report | rest | driver

Writes into the current folder, which is no checkout, prints a line for each step, and exits with 1
after the first that fails. ``report`` records a program and writes its report, ``rest`` does what
comes after that, and ``driver`` needs a driver and CUDA's libraries from wheels. It needs neither a
GPU nor pytest; `scripts.test_wheel` makes the environments.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from importlib.metadata import files, metadata
from pathlib import Path

COMMAND = str(Path(sys.executable).with_name("gpuviz"))
TIMEOUT_S = 120
RECORD = """
import gpuviz
gpu = gpuviz.SimulatedGPU()
with gpuviz.record("run.gpuviz", device=gpu) as recorder:
    kept = [gpu.empty(1 << 20) for _ in range(20)]
    gpu.launch("scale", reads=kept[:1], writes=kept[1:2], duration=1e-3)
    gpu.synchronize()
recording = recorder.recording
recording.report("run.html")
assert recording.peak().bytes == 20 << 20
assert gpuviz.load("run.html").peak().bytes == 20 << 20
assert recording.table("memory_events").num_rows > 20
recording.findings(), recording.hazards(), recording.overlap(), recording.kernels()
"""
# The interpreter ends while the view is open.
DASHBOARD = """
import time, gpuviz
from gpuviz.notebook.control import shared_control
gpu = gpuviz.SimulatedGPU()
shared_control().start(device=gpu)
view = gpuviz.dashboard()
kept = gpu.empty(1 << 20)
time.sleep(0.6)
"""
CHARTS = """
import gpuviz
from gpuviz.errors import MissingPackageError
from gpuviz.figures.sites import sites_figure
recording = gpuviz.load("run.gpuviz")
try:
    import plotly
except ModuleNotFoundError:
    try:
        sites_figure(recording)
    except MissingPackageError as error:
        assert "pip install" in str(error)
else:
    sites_figure(recording)
"""
MAGICS = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("%load_ext gpuviz").raise_error()
shell.run_cell("import gpuviz; gpu = gpuviz.SimulatedGPU()").raise_error()
shell.run_cell("%%gpuviz --simulated gpu\\nkept = gpu.empty(1 << 20)").raise_error()
"""
# Allocates by the driver alone; NVRTC compiles without a GPU, with headers that wheels bring.
DRIVER_ONLY = """
import gpuviz
with gpuviz.record("driver.gpuviz", streams=False) as recorder:
    kept = gpuviz.caching_allocator_alloc(30 << 20, device=0, stream=0)
    gpuviz.caching_allocator_delete(gpuviz.caching_allocator_alloc(5 << 20, device=0, stream=0))
assert recorder.recording.peak().bytes == 35 << 20
recorder.recording.report("driver.html")
"""
COMPILED = """
from pathlib import Path
import nvidia.cu13
from cupy.cuda import nvrtc
source = "#include <cuda_fp16.h>\\nextern \\"C\\" __global__ void f(__half* x) { *x = *x + *x; }"
program = nvrtc.createProgram(source, "f.cu", [], [])
headers = Path(nvidia.cu13.__path__[0], "include")
nvrtc.compileProgram(program, ["--gpu-architecture=sm_90", f"--include-path={headers}"])
assert b"f" in nvrtc.getCUBIN(program)
"""
# What doctor finds beside an imitated driver: that CUPTI cannot be used and that NVML is missing.
DRIVER_TOPICS = ("driver", "GPUs", "CuPy", "CUDA", "NVRTC", "CUPTI")
MISSING = ("cc", "gcc", "g++", "clang", "nvcc", "node", "npm", "sh")
EVERY_PROCESS = "import gpuviz; gpu = gpuviz.SimulatedGPU(); kept = gpu.empty(1234567)"


def ran(step: str, command: list[str], folder: Path, *, code: int = 0, **variables: str) -> str:
    """Run a step, and return what it printed."""
    begin = time.monotonic()
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    sys.stdout.write(f"{time.monotonic() - begin:6.1f} s  {step}\n")
    sys.stdout.flush()
    if done.returncode != code or "Traceback" in done.stderr:
        sys.exit(f"{step} failed with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def report(folder: Path) -> None:
    """Record a program and write its report."""
    assert [name for name in MISSING if shutil.which(name)] == []
    ran("record, report, load", [sys.executable, "-W", "error", "-c", RECORD], folder)


def rest(folder: Path) -> None:
    """Use the other parts."""
    programs = {"a dashboard is open at the end": DASHBOARD, "charts": CHARTS, "magics": MAGICS}
    for step, program in programs.items():
        ran(step, [sys.executable, "-W", "error", "-c", program], folder)
    ran("record each process", [sys.executable, "-c", EVERY_PROCESS], folder, GPUVIZ_RECORD="each")
    [recorded] = (folder / "each").glob("*.gpuviz")
    version = ran("gpuviz --version", [COMMAND, "--version"], folder)
    assert metadata("gpuviz")["Version"] in version
    ran("gpuviz demo", [COMMAND, "demo", "--output", "demo.html"], folder)
    ran("gpuviz demo --tour", [COMMAND, "demo", "--tour"], folder)
    ran("gpuviz report", [COMMAND, "report", str(recorded)], folder)
    for name in ("info", "findings", "hazards", "peak", "stats"):
        ran(f"gpuviz {name}", [COMMAND, name, "run.gpuviz"], folder)
    assert levels(ran("gpuviz doctor", [COMMAND, "doctor", "--json"], folder, code=1)) >= {
        ("platform", "ok"),
        ("driver", "problem"),
    }
    shipped = {str(path) for path in files("gpuviz") or ()}
    assert any(path.endswith("sboms/gpuviz.cdx.json") for path in shipped)
    assert any(path.endswith("licenses/THIRD_PARTY_NOTICES.txt") for path in shipped)


def driver(folder: Path) -> None:
    """Record memory, find CUDA's libraries, and compile a kernel."""
    ran("record memory, report", [sys.executable, "-W", "error", "-c", DRIVER_ONLY], folder)
    found = levels(ran("gpuviz doctor", [COMMAND, "doctor", "--json"], folder))
    assert found >= {(topic, "ok") for topic in DRIVER_TOPICS}, found
    # NVRTC calls functions of a driver that it finds, and the imitated one lacks them.
    compiled = [sys.executable, "-W", "error", "-c", COMPILED]
    ran("compile a kernel", compiled, folder, LD_LIBRARY_PATH="")


def levels(doctor: str) -> set[tuple[str, str]]:
    """Return the topics that doctor printed, with their levels."""
    return {(each["topic"], each["level"]) for each in json.loads(doctor)["findings"]}


if __name__ == "__main__":
    {"report": report, "rest": rest, "driver": driver}[sys.argv[1]](Path.cwd())
