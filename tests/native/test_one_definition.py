"""Types with the same name are the same type in all of the native code.

Violations are undefined behaviour that compilers need not report. ``-Wodr`` detects them when
objects are linked with ``-flto``. Within a room, which is one source here, a second definition is
an error.
"""

import sysconfig
from pathlib import Path

import nanobind
import nvidia
import pytest

from tests.native.compilation import COMPILER, NATIVE, Compilation, run, sources_of

pytestmark = pytest.mark.timeout(1200)  # compiles all native code
ROOMS = sorted(path.name for path in NATIVE.iterdir() if path.is_dir() and path.name != "testing")
FLAGS = ["-O0", "-flto", "-fPIC", "-fvisibility=hidden", "-Wall", "-Wodr", "-Werror"]
LINK = [COMPILER, *FLAGS, "-r", "-flinker-output=rel"]


def headers_of_others():
    """Return the folders of CUDA's, Python's and nanobind's headers."""
    cuda = next(
        header.parent
        for wheels in nvidia.__path__
        for header in Path(wheels).glob("*/include/cupti.h")
        if (header.parent / "cuda.h").exists()
    )
    return [str(cuda), sysconfig.get_paths()["include"], nanobind.include_dir()]


def test_a_type_is_defined_once(pytestconfig):
    others = [part for folder in headers_of_others() for part in ("-isystem", folder)]
    compilation = Compilation([*FLAGS, *others], pytestconfig.cache.mkdir("one-definition"))

    objects = compilation.objects({room: sources_of(room) for room in ROOMS})

    run([*LINK, *objects, "-o", compilation.folder / "all.o"])


def test_two_types_of_one_name_are_found(tmp_path):
    sources = {"short": "struct Block { int size; };", "long": "struct Block { long size, end; };"}
    for name, block in sources.items():
        function = f"Block {name}_block() {{ return {{}}; }}"
        text = f"namespace gpuviz {{ {block} Block {name}_block(); {function} }}"
        (tmp_path / f"{name}_block.hpp").write_text(text)
    compilation = Compilation(FLAGS, tmp_path)
    objects = compilation.objects({name: [tmp_path / f"{name}_block.hpp"] for name in sources})

    with pytest.raises(AssertionError, match=r"Block.* violates the C.. One Definition Rule"):
        run([*LINK, *objects, "-o", tmp_path / "all.o"])
