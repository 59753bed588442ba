"""Runs the programs of this folder with the checks of each sanitizer.

Each ``test_*.cpp`` is one program, linked with the part of the core that needs neither Python's nor
CUDA's headers, so that only a compiler is needed: ``CXX``, else ``g++``.
"""

import re
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
RUNS = [
    (sanitizer, program.stem)
    for sanitizer in SANITIZERS
    for program in PROGRAMS
    if sanitizer == "address" or STARTS_THREADS.search(program.read_text())
]


@pytest.fixture(scope="module")
def programs(request):
    """Paths of the programs by name."""
    folder = request.config.cache.mkdir(f"sanitizer-{request.param}")
    flags = ["-g1", "-fno-omit-frame-pointer", *SANITIZERS[request.param]]
    names = {name for sanitizer, name in RUNS if sanitizer == request.param}
    return Compilation(flags, folder).programs(each for each in PROGRAMS if each.stem in names)


@pytest.mark.parametrize(("programs", "name"), RUNS, indirect=["programs"])
def test_programs_run_clean(programs, name):
    run([programs[name]], timeout=600)
