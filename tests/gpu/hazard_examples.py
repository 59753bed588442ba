"""Table of the hazards found: ``python -m tests.gpu.hazard_examples [--programs FILE] [--runs N]``.

First in programs that have none, see `ordered_programs`. FILE is a module with functions that have
a hazard, and correct ones; its ``EXPECTED`` has a kind or None for each, and its ``HOST_ACCESS``
names those whose second access is the host's, which no recording of CUDA's calls contains. Exits
with 1 unless a hazard of its kind is found in each program that has one in every run, and none in
the correct ones.
"""

import argparse
import importlib.util
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cupy as cp

import gpuviz
from gpuviz.hazards.known import unknown
from tests.gpu.ordered_programs import PROGRAMS


def recorded(program: Callable[[], Any]) -> gpuviz.Recording:
    """Return the recording of a program whose kernels are compiled."""
    program()
    cp.cuda.Device().synchronize()
    cp.fft.config.get_plan_cache().clear()  # their work areas come from another allocator
    with gpuviz.record() as recorder:
        program()
    return recorder.recording


def lines(hazard: Any) -> str:
    """Return the kind of a hazard and its two lines."""
    return f"{hazard.kind} {hazard.tier}: {hazard.first.site} -> {hazard.second.site}"


def found_in(program: Callable[[], Any], runs: int, kind: str) -> tuple[int, str, Counter[str]]:
    """Return in how many runs a hazard of this kind was found, any if empty, and all hazards.

    Between them is why some runs were not judged.
    """
    hits, reason, found = 0, "", Counter[str]()
    for _ in range(runs):
        recording = recorded(program)
        hazards = recording.hazards()
        reason = unknown(recording) or reason
        hits += any(kind in ("", each.kind) for each in hazards)
        found.update(map(lines, hazards))
    return hits, reason, found


def cases(path: Path | None) -> Iterator[tuple[str, Callable[[], Any], str]]:
    """Yield name, program, and the kind of its hazard, "silent", or "any" if only the host's."""
    for name, program in PROGRAMS.items():
        yield name, program, "silent"
    if path is None:
        return
    specification = importlib.util.spec_from_file_location("hazard_programs", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    for name, (kind, _) in module.EXPECTED.items():
        is_hidden = name in module.HOST_ACCESS
        yield name, getattr(module, name), "any" if is_hidden else kind or "silent"


def main(arguments: list[str]) -> int:
    """Print a line for each program, with its hazards below, and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.hazard_examples")
    parser.add_argument("--programs", type=Path)
    parser.add_argument("--runs", type=int, default=1)
    given = parser.parse_args(arguments)
    wrong = 0
    for name, program, expected in cases(given.programs):
        kind = "" if expected in ("silent", "any") else expected
        hits, reason, found = found_in(program, given.runs, kind)
        required = {"silent": 0, "any": hits}.get(expected, given.runs)
        is_right = hits == required and not reason
        wrong += not is_right
        print(
            f"{'right' if is_right else 'WRONG'} {name:30} expected {expected:6} "
            f"found in {hits} of {given.runs} runs {reason}",
        )
        for text, count in found.most_common(4):
            print(f"      {count} x {text}")
    print(f"{wrong} wrong" if wrong else "all right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
