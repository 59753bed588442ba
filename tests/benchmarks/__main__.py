"""Measures, prints one table, and exits with 1 if a bound is missed.

Usage: python -m tests.benchmarks [--save FOLDER] [NAME ...]. With ``--save`` the rows of each
module are written to FOLDER/NAME.json with the date and the machine; of those in ``measured``
beside this file `scripts.generate_performance` makes the tables of the documentation.

Every other module of this folder has ``rows()``, which measures and returns or yields its rows of
the table.
Modules with ``NEEDS_GPU = True`` are skipped, and listed, if there is no GPU with CuPy.
"""

import argparse
import ctypes
import importlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
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


def machine(*, uses_gpu: bool) -> str:
    """Return what the machine is, in words: its processor, and its GPU and CuPy if used."""
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    model = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    parts = [
        f"Python {sys.version.split()[0]}",
        f"{os.cpu_count()} cores of {model[1] if model else os.uname().machine}",
    ]
    if uses_gpu:
        query = ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"]
        found = subprocess.run(query, capture_output=True, text=True, check=False).stdout
        name, _, driver = found.partition("\n")[0].partition(", ")
        parts[:0] = [name, f"driver {driver}", *_installed("cupy-cuda13x", "cupy-cuda12x", "torch")]
    return ", ".join(parts)


def _installed(*packages: str) -> Iterator[str]:
    for package in packages:
        try:
            yield f"{package.partition('-')[0]} {version(package)}"
        except PackageNotFoundError:
            continue


def save(path: Path, rows: list[Row], *, command: str, uses_gpu: bool) -> None:
    """Write what was measured by a command, with the date and the machine."""
    facts = {
        "command": command,
        "date": datetime.now(UTC).date().isoformat(),
        "machine": machine(uses_gpu=uses_gpu),
        "rows": rows,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{json.dumps(facts, indent=1)}\n", encoding="utf-8")


def measure(names: list[str], folder: Path | None) -> Iterator[Row]:
    for name in names:
        module = importlib.import_module(f"tests.benchmarks.{name}")
        uses_gpu = getattr(module, "NEEDS_GPU", False)
        if uses_gpu and not has_gpu():
            sys.stderr.write(f"{name} is left out: there is no GPU with CuPy\n")
            continue
        rows = list(cast("Callable[[], Iterable[Row]]", module.rows)())
        if folder is not None:
            command = f"python -m tests.benchmarks {name}"
            save(folder / f"{name}.json", rows, command=command, uses_gpu=uses_gpu)
        yield from rows


def main() -> int:
    here = Path(__file__).parent
    present = sorted(path.stem for path in here.glob("*.py") if not path.stem.startswith("_"))
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks")
    parser.add_argument("--save", type=Path, metavar="FOLDER")
    parser.add_argument("names", nargs="*", metavar="NAME")
    given = parser.parse_args()
    rows = list(measure(given.names or present, given.save))
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
