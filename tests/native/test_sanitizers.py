"""Runs the programs of this folder with the checks of each sanitizer.

Each ``test_*.cpp`` is one program, linked with the part of the core that needs neither Python's nor
CUDA's headers, so that only a compiler is needed: ``CXX``, else ``g++``.
"""

from pathlib import Path

import pytest

from tests.native.compilation import Compilation, run

pytestmark = pytest.mark.timeout(1200)  # the first test of a configuration compiles all of it
PROGRAMS = sorted(Path(__file__).parent.glob("test_*.cpp"))
SANITIZERS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
}


@pytest.fixture(scope="module", params=SANITIZERS)
def programs(request):
    """Paths of the programs by name."""
    folder = request.config.cache.mkdir(f"sanitizer-{request.param}")
    flags = ["-O1", "-g1", "-fno-omit-frame-pointer", *SANITIZERS[request.param]]
    return Compilation(flags, folder).programs(PROGRAMS)


@pytest.mark.parametrize("source", PROGRAMS, ids=lambda source: source.stem)
def test_programs_run_clean(programs, source):
    run([programs[source.stem]], timeout=600)
