"""Runs the programs of this folder with the checks of each sanitizer.

Each ``test_*.cpp`` is one program, linked with the part of the core that needs neither Python's nor
CUDA's headers, so that only a compiler is needed: ``CXX``, else ``g++``.
"""

import re
from functools import cache
from pathlib import Path

import pytest

from tests.native.compilation import Compilation, run

pytestmark = pytest.mark.timeout(1200)  # the first test of a configuration compiles all of it
PROGRAMS = sorted(Path(__file__).parent.glob("test_*.cpp"))
SANITIZERS = {
    # Compiled without optimization in two thirds of the time; the programs run for a few seconds.
    "address": ["-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-O1", "-fsanitize=thread"],
}
# Only programs that start threads, in themselves or in the core, have races to be found.
STARTS_THREADS = re.compile("std::(thread|jthread|async)|analysis/overlap.hpp")
# `scripts/deep` runs these: a second compilation of the core takes as long as most other tests.
DEEP = {"thread"}
# What a program calls that draws as much as it is asked to.
DRAWS = "effort("
RUNS = [
    pytest.param(sanitizer, program.stem, marks=[pytest.mark.deep] if sanitizer in DEEP else [])
    for sanitizer in SANITIZERS
    for program in PROGRAMS
    if sanitizer == "address" or STARTS_THREADS.search(program.read_text())
]


@pytest.fixture(scope="module")
def compiled(pytestconfig):
    """Return a function that compiles the programs of a sanitizer once; their paths by name."""

    @cache
    def programs(sanitizer):
        folder = pytestconfig.cache.mkdir(f"sanitizer-{sanitizer}")
        flags = ["-g1", "-fno-omit-frame-pointer", *SANITIZERS[sanitizer]]
        names = {name for each, name in (run.values for run in RUNS) if each == sanitizer}
        return Compilation(flags, folder).programs(each for each in PROGRAMS if each.stem in names)

    return programs


@pytest.mark.parametrize(("sanitizer", "name"), RUNS)
def test_programs_run_clean(compiled, sanitizer, name):
    run([compiled(sanitizer)[name]], timeout=600)


@pytest.mark.deep
@pytest.mark.parametrize("name", [each.stem for each in PROGRAMS if DRAWS in each.read_text()])
def test_programs_run_clean_with_ten_times_the_draws(compiled, name):
    run([compiled("address")[name], "10"], timeout=600)
