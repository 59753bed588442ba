"""Builds the programs of this folder with each sanitizer and runs them.

Each ``test_*.cpp`` is one program, linked with all of the core that needs neither Python nor CUDA's
headers, so that a compiler is all this takes: ``CXX``, else ``g++``. Objects stay in pytest's cache
until a source changes.
"""

import hashlib
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).parent
NATIVE = HERE.parents[1] / "gpuviz" / "native"
PROGRAMS = sorted(HERE.glob("test_*.cpp"))
SANITIZERS = {
    "address": ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "thread": ["-fsanitize=thread"],
}
COMPILER = os.environ.get("CXX", "g++")
FLAGS = ["-std=c++20", "-O1", "-g1", "-fno-omit-frame-pointer", "-pthread", f"-I{NATIVE}"]


def core_sources():
    folders = ("device", "record", "state", "analysis", "allocator", "cupti", "nvtx")
    folders += ("simulation", "replay", "formats")
    sources = [source for folder in folders for source in sorted((NATIVE / folder).glob("*.cpp"))]
    return [source for source in sources if not source.name.startswith(("cuda_", "cupti_"))]


def headers_text():
    return "".join(
        path.read_text() for path in sorted([*NATIVE.rglob("*.hpp"), *HERE.glob("*.hpp")])
    )


def run(command, **options):
    ran = subprocess.run(command, capture_output=True, text=True, check=False, **options)
    assert ran.returncode == 0, f"{' '.join(map(str, command))}\n{ran.stdout}{ran.stderr}"


class Build:
    """The core and the programs, compiled with one sanitizer."""

    def __init__(self, flags, folder):
        self.flags = [*FLAGS, *flags]
        self.folder = folder
        self.headers = headers_text()
        folder.mkdir(parents=True, exist_ok=True)

    def compiled(self, source):
        """Return the object of a source."""
        key = f"{COMPILER}{self.flags}{self.headers}{source.read_text()}"
        name = f"{source.parent.name}-{source.stem}"
        target = self.folder / f"{name}-{hashlib.sha256(key.encode()).hexdigest()[:16]}.o"
        if not target.exists():
            for outdated in self.folder.glob(f"{name}-*.o"):
                outdated.unlink()
            partial = target.with_suffix(f".{os.getpid()}")
            run([COMPILER, *self.flags, "-c", source, "-o", partial])
            partial.rename(target)
        return target

    def program(self, source):
        """Return the program of a source, linked with the core."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(self.compiled, [source, *core_sources()]))
        target = self.folder / source.stem
        run([COMPILER, *self.flags, *objects, "-ldl", "-o", target])
        return target


@pytest.mark.parametrize("sanitizer", SANITIZERS)
@pytest.mark.parametrize("source", PROGRAMS, ids=lambda source: source.stem)
def test_programs_run_clean(source, sanitizer, pytestconfig):
    build = Build(SANITIZERS[sanitizer], pytestconfig.cache.mkdir(f"sanitizer-{sanitizer}"))

    program = build.program(source)

    run([program], timeout=120)
