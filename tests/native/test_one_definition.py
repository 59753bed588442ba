"""Types with the same name are the same type in all of the native code.

Violations are undefined behaviour that compilers need not report. ``-Wodr`` detects them when
objects are linked with ``-flto``, as those of a wheel are. Within a room, which is one source
there, a second definition is an error.
"""

import pytest

from tests.native.compilation import COMPILER, Compilation, run
from tests.wheels import build_wheel

FLAGS = ["-O0", "-flto", "-fPIC"]
LINK = [COMPILER, "-shared", "-flto", "-Werror=odr"]


@pytest.mark.deep
@pytest.mark.timeout(1200)  # compiles all of the core
def test_a_wheel_links_with_each_type_defined_once(tmp_path):
    build_wheel(tmp_path, "CMAKE_MODULE_LINKER_FLAGS=-Werror=odr", "CMAKE_CXX_FLAGS_RELEASE=-O0")
    rules = (tmp_path / "build" / "build.ninja").read_text()
    flags = {line for line in rules.splitlines() if line.startswith("  FLAGS = ")}
    link = next(line for line in rules.splitlines() if "-Werror=odr" in line)

    assert flags
    assert all("-flto" in each for each in flags)
    assert link.startswith("  LINK_FLAGS = ")


def test_two_types_of_one_name_are_found(tmp_path):
    sources = {"short": "struct Block { int size; };", "long": "struct Block { long size, end; };"}
    for name, block in sources.items():
        function = f"Block {name}_block() {{ return {{}}; }}"
        text = f"namespace gpuviz {{ {block} Block {name}_block(); {function} }}"
        (tmp_path / f"{name}_block.hpp").write_text(text)
    compilation = Compilation(FLAGS, tmp_path)
    objects = compilation.objects({name: [tmp_path / f"{name}_block.hpp"] for name in sources})

    with pytest.raises(AssertionError, match=r"Block.* violates the C.. One Definition Rule"):
        run([*LINK, *objects, "-o", tmp_path / "all.so"])
