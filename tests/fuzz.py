"""Damaged files, files of false values and malformed messages: thousands of each kind.

``python -m tests.fuzz COUNT [KIND[:FIRST] ...]`` handles COUNT cases of each kind, each in its own
process, and prints for each kind the longest time and the most memory. FIRST is the number of the
first case. It exits 1 if a case took more than 5 s of CPU time or 1 GB, or raised anything but
gpuviz's own error. ``scripts/fuzz`` does so with a core under the sanitizers.
"""

import importlib
import os
import pkgutil
import random
import resource
import shutil
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import gpuviz
from tests.integration.formats import snapshots_in_browser
from tests.unit.formats import damaged_files, false_snapshots, false_values
from tests.unit.notebook import malformed_messages

Outcome = Callable[[Path], "bool | Exception"]

LONGEST_S = 5.0
MOST_BYTES = 1 << 30
MODULES = (damaged_files, false_values, false_snapshots, snapshots_in_browser, malformed_messages)
KINDS = {name: (make, module.outcome) for module in MODULES for name, make in module.KINDS.items()}
# Addresses of the address sanitizer's shadow are many terabytes.
IS_SANITIZED = "libasan" in os.environ.get("LD_PRELOAD", "")
# What the analyses of a recording import when they are called.
ROOMS = ("advice", "analysis", "comparison", "formats", "hazards", "merging", "report")


def measured(path: Path, outcome: Outcome) -> tuple[int, float, int]:
    """Handle a file in a child process; return its exit code, CPU seconds and bytes.

    The code is 0 if ``outcome(path)`` is True, 3 if it is False, else 1.
    """
    process = os.fork()
    if process == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (60, 60))
        if not IS_SANITIZED:
            resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))
        code = 1
        try:
            found = outcome(path)
            if isinstance(found, Exception):
                traceback.print_exception(found, limit=-4)
            else:
                code = 0 if found else 3
        except Exception:  # noqa: BLE001 - it is a finding
            traceback.print_exc(limit=-4)
        finally:
            sys.stderr.flush()
            os._exit(code)
    _, status, usage = os.wait4(process, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime, usage.ru_maxrss << 10


def show(line: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def fuzz(name: str, first: int, count: int) -> bool:
    """Print what the cases of a kind cost; return whether all kept the limits."""
    make, outcome = KINDS[name]
    good, longest, most, loaded = True, 0.0, 0, 0
    for seed in range(first, first + count):
        folder = Path(tempfile.mkdtemp(prefix="gpuviz-fuzz-"))
        path = make(folder, random.Random(f"{name}-{seed}"))
        code, seconds, nbytes = measured(path, outcome)
        loaded += code == 0
        longest, most = max(longest, seconds), max(most, nbytes)
        if code not in {0, 3} or seconds > LONGEST_S or nbytes > MOST_BYTES:
            good = False
            show(f"{name} {seed}: exit {code}, {seconds:.2f} s, {nbytes >> 20} MiB: {path}")
            continue
        shutil.rmtree(folder)
        if seed % 250 == 249:
            show(f"{name}: {seed + 1} so far, {longest:.2f} s, {most >> 20} MiB")
    show(f"{name}: {loaded} of {count} accepted, {longest:.2f} s, {most >> 20} MiB")
    return good


def main(arguments: list[str]) -> int:
    """Handle the cases of all kinds, or of those that are named; return the exit status."""
    count, *named = arguments
    chosen = [each.partition(":") for each in named or KINDS]
    importlib.import_module("pyarrow.parquet")
    for module in pkgutil.walk_packages(gpuviz.__path__, "gpuviz."):
        if module.name.split(".")[1] in ROOMS:
            importlib.import_module(module.name)
    for of in (false_values.single, false_values.merged):
        false_values.members(of)
    failed = [name for name, _, first in chosen if not fuzz(name, int(first or 0), int(count))]
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
