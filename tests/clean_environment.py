"""Uses an installed gpuviz as its first user would, in an environment with nothing else.

    python tests/clean_environment.py FOLDER

Runs in any environment into which a wheel was installed, from a folder that is no checkout; writes
into FOLDER, prints a line for each step, and exits with 1 after the first that fails. It needs
neither a GPU nor pytest; `scripts/test-wheel` makes the environments.
"""

import json
import os
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


def main(folder: Path) -> None:
    """Run all steps."""
    programs = {
        "record, report, load": RECORD,
        "a dashboard is open at the end": DASHBOARD,
        "charts": CHARTS,
        "magics": MAGICS,
    }
    for step, program in programs.items():
        ran(step, [sys.executable, "-W", "error", "-c", program], folder)
    ran("record each process", [sys.executable, "-c", EVERY_PROCESS], folder, GPUVIZ_RECORD="each")
    assert len(list((folder / "each").glob("*.gpuviz"))) == 1
    version = ran("gpuviz --version", [COMMAND, "--version"], folder)
    assert metadata("gpuviz")["Version"] in version
    ran("gpuviz demo", [COMMAND, "demo", "--output", "demo.html"], folder)
    for name in ("info", "findings", "hazards", "peak", "stats"):
        ran(f"gpuviz {name}", [COMMAND, name, "run.gpuviz"], folder)
    doctor = json.loads(ran("gpuviz doctor", [COMMAND, "doctor", "--json"], folder, code=1))
    assert {each["topic"]: each["level"] for each in doctor["findings"]}["platform"] == "ok"
    shipped = {str(path) for path in files("gpuviz") or ()}
    assert any(path.endswith("sboms/gpuviz.cdx.json") for path in shipped)
    assert any(path.endswith("licenses/THIRD_PARTY_NOTICES.txt") for path in shipped)
    sys.stdout.write("everything works\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]).absolute())
