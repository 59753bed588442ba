"""How far the times of a recording without its cost are off, for whole programs.

Needs a GPU with CuPy, torch, torchvision and transformers. Each program runs in a process of its
own; see `tests.gpu.compensated_programs`.
"""

import subprocess
import sys
from collections.abc import Iterator

from tests.gpu.compensated_programs import MOST_ERROR, MOST_POINTS, PROGRAMS

Row = tuple[str, str, str, bool]

NEEDS_GPU = True
TIMEOUT_S = 150


def rows() -> Iterator[Row]:
    """Measure all programs; yield two rows for each."""
    for program in PROGRAMS:
        command = [sys.executable, "-m", "tests.gpu.compensated_programs", program.__name__]
        ran = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=TIMEOUT_S
        )
        cells = [cell.strip() for cell in ran.stdout.splitlines()[-1].strip("| ").split("|")]
        name, plain, recorded, moved, error, busy, points = cells
        text = f"{error} ({plain} unrecorded, {recorded} recorded, {moved} compensated)"
        off = abs(float(error.rstrip(" %"))) / 100
        yield f"{name}: time of a step", f"{100 * MOST_ERROR:.0f} %", text, off <= MOST_ERROR
        is_near = abs(float(points)) <= MOST_POINTS
        yield f"{name}: GPU busy", f"{MOST_POINTS:.0f} points", f"{points} ({busy})", is_near
