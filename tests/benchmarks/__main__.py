"""``python -m tests.benchmarks [NAME ...]``: measure, print one table, exit 1 if a bound is missed.

Every other module of this folder has ``rows()``, which measures and returns or yields its rows of
the table.
Modules with ``NEEDS_GPU = True`` are skipped, and listed, if there is no GPU with CuPy.
"""

import ctypes
import importlib
import sys
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import cast

# The quantity, its bound, its measured value, and whether that is within the bound.
Row = tuple[str, str, str, bool]


def has_gpu() -> bool:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return driver.cuInit(0) == 0 and find_spec("cupy") is not None


def measure(names: list[str]) -> Iterator[Row]:
    for name in names:
        module = importlib.import_module(f"tests.benchmarks.{name}")
        if getattr(module, "NEEDS_GPU", False) and not has_gpu():
            sys.stderr.write(f"{name} is left out: there is no GPU with CuPy\n")
            continue
        yield from cast("Callable[[], Iterable[Row]]", module.rows)()


def main() -> int:
    here = Path(__file__).parent
    present = sorted(path.stem for path in here.glob("*.py") if not path.stem.startswith("_"))
    rows = list(measure(sys.argv[1:] or present))
    header = ("what", "must reach", "measured", "ok")
    cells = [header, *((*row[:3], "yes" if row[3] else "NO") for row in rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    cells.insert(1, cast("tuple[str, str, str, str]", tuple("-" * width for width in widths)))
    for line in cells:
        padded = (cell.ljust(width) for cell, width in zip(line, widths, strict=True))
        sys.stdout.write(f"| {' | '.join(padded)} |\n")
    return 0 if all(row[3] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
