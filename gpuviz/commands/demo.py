"""``gpuviz demo``: a report of an example program, on any machine."""

import shutil
import tempfile
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from gpuviz.commands.browser import open_page
from gpuviz.commands.output import say
from gpuviz.commands.workloads import WORKLOADS
from gpuviz.errors import DeviceUnavailableError, GpuvizError
from gpuviz.formats.output_path import check_output
from gpuviz.installation import pip_install

if TYPE_CHECKING:
    from gpuviz.recording import Recording

TOUR = Path(str(files("gpuviz.commands") / "tour.ipynb"))
RECORDINGS = Path(str(files("gpuviz.commands") / "recordings"))
# Enough for every workload at scale 1.
NEEDED_BYTES = 8 * 2**30


def run(name: str, *, output: Path | None, force: bool, open_browser: bool) -> None:
    """Write the report of a workload, and open it unless an output is given.

    Raises:
        GpuvizError: There is no such workload, or the output cannot be written.
    """
    if name not in WORKLOADS:
        known = ", ".join(WORKLOADS)
        raise GpuvizError(f"Unknown workload {name!r}; choose one of {known}.")
    if output is not None:
        check_output(output, force=force)
    path = output or Path(tempfile.mkdtemp(prefix="gpuviz-demo-"), f"{name}.html")
    shown = _record(name) if _has_gpu() else _replay(name)
    shown.report(path, overwrite=force)
    say(f"Wrote {path}")
    if output is None and open_browser:
        open_page(path)


def write_tour(output: Path, *, force: bool) -> None:
    """Write the tour, a notebook of ten minutes.

    Raises:
        GpuvizError: The output cannot be written.
    """
    check_output(output, force=force)
    shutil.copyfile(TOUR, output)
    missing = "" if find_spec("jupyterlab") else f", after `{pip_install('jupyterlab')}`"
    say(f"Wrote {output}; `jupyter lab {output}` opens it{missing}.")


def print_workloads() -> None:
    """Print each workload with its description."""
    width = max(map(len, WORKLOADS))
    for name, workload in WORKLOADS.items():
        say(f"{name:<{width}}  {workload.description}")


def _has_gpu() -> bool:
    """Return whether CuPy is installed and sees a device."""
    if find_spec("cupy") is None:
        return False
    from gpuviz.frameworks.cupy_current import import_cupy

    try:
        return bool(import_cupy().cuda.is_available())
    except DeviceUnavailableError:
        return False


def _record(name: str) -> "Recording":
    from gpuviz.allocator.memory import mem_get_info
    from gpuviz.recorder.record import record

    free, _ = mem_get_info()
    scale = min(1.0, free / NEEDED_BYTES)
    say(f"Recording {name} on this machine's GPU")
    with record() as recorder:
        WORKLOADS[name].run(scale)
    return recorder.recording


def _replay(name: str) -> "Recording":
    """Return a replay of the shipped recording on the simulated device."""
    from gpuviz import replay
    from gpuviz.recording import load

    shipped = load(RECORDINGS / f"{name}.gpuviz")
    device = shipped.table("devices")["name"][0].as_py()
    say(
        f"No GPU with CuPy found: replaying {name} on the simulated device at its original\n"
        f"speed, from a recording made on {device}",
    )
    return replay(shipped, speed=1.0)
