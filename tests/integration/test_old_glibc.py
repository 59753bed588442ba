"""What a wheel may need of systems with glibc 2.28."""

import os
import subprocess
import zipfile

import pytest

from scripts.old_glibc import problems

OLD = 'extern "C" void f() { throw 1; }\n'
NEW = '#include <charconv>\nextern "C" void f(char* at) { std::to_chars(at, at + 9, 1.5); }\n'


@pytest.fixture
def wheel(tmp_path):
    def build(source, *options):
        (tmp_path / "code.cpp").write_text(source)
        library = tmp_path / "code.so"
        command = ["g++", "-std=c++20", "-shared", "-fPIC", *options, "-o", library, "code.cpp"]
        subprocess.run(command, cwd=tmp_path, check=True)
        with zipfile.ZipFile(tmp_path / "code.whl", "w") as archive:
            archive.write(library, "code.so")
        return tmp_path / "code.whl"

    return build


def test_a_symbol_that_gcc_8_lacks_is_named(wheel):
    machine = os.uname().machine

    assert problems(machine, wheel(OLD)) == []
    assert problems(machine, wheel(NEW)) == ["code.so needs _ZSt8to_charsPcS_d"]


def test_a_library_that_not_every_system_has_is_named(wheel):
    options = ("-Wl,--no-as-needed", "-l:libresolv.so.2")

    assert problems(os.uname().machine, wheel(OLD, *options)) == ["code.so needs libresolv.so.2"]
