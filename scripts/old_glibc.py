"""Compiles C++ for systems with glibc 2.28, by this system's GCC.

Usage: python -m scripts.old_glibc ARCHITECTURE FOLDER, with x86_64 or aarch64. It writes the
compiler FOLDER/c++.

Code is compiled by the system's GCC and linked to three things instead of the system's C and C++
libraries: glibc's symbols as of 2.28, which the wheel ``ziglang`` has for every architecture;
libstdc++'s shared library; and, statically, what that has only since GCC 8. Like this, wheels have
the same libstdc++ as the rest of the process, whose exceptions they throw and catch.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
GLIBC = "2.28"
# The newest versions of symbols in a manylinux_2_28 wheel.
NEWEST = {"GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11)}
_VERSIONED = re.compile(r"\(?(GLIBCXX|CXXABI)_([\d.]+)\)?\s+(\S+)$")
WRAPPER = """#!/bin/sh
# Links shared libraries as written in scripts/old_glibc.py; compiles like {compiler}.
case " $* " in
*" -shared "*) exec {compiler} "$@" {flags} ;;
*) exec {compiler} "$@" ;;
esac
"""


def output(*command: str | Path) -> str:
    """Return what a command prints, also as errors."""
    done = subprocess.run(
        [*map(str, command)],
        check=True,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    return done.stdout


def stubs(architecture: str, folder: Path) -> list[Path]:
    """Write libraries that have the symbols of an old glibc and no code."""
    source = folder / "empty.c"
    source.write_text("int empty;\n")
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", f"{architecture}-linux-gnu.{GLIBC}"]
    libraries = ["-lm", "-lpthread", "-ldl", "-lrt"]
    log = output(*zig, "-shared", source, "-o", folder / "empty.so", *libraries, "--verbose")
    # The last one; zig links the stubs themselves before.
    line = [each for each in log.splitlines() if each.startswith("ld.lld")][-1]
    names = r"\S+/lib(?:c|m|pthread|dl|rt|ld)\.so\.\d+|\S+/libc_nonshared\.a"
    return [Path(shutil.copy(path, folder)) for path in re.findall(names, line)]


def newer_members(compiler: str, prefix: str, folder: Path) -> Path:
    """Write an archive of the parts of libstdc++ that its version of GCC 8 does not have."""
    shared, static = (
        Path(output(compiler, f"-print-file-name=libstdc++.{end}").strip()).resolve()
        for end in ("so", "a")
    )
    newer = set()
    for line in output(f"{prefix}objdump", "-T", shared).splitlines():
        found = _VERSIONED.search(line)
        if found and tuple(map(int, found[2].split("."))) > NEWEST[found[1]]:
            newer.add(found[3])
    members = set()
    for line in output(f"{prefix}nm", "-A", "--defined-only", static).splitlines():
        place, _, symbol = line.rpartition(" ")
        if symbol in newer:
            members.add(place.split(":")[1])
    parts = folder / "newer"
    parts.mkdir()
    subprocess.run([f"{prefix}ar", "x", static, *sorted(members)], cwd=parts, check=True)
    archive = folder / "libnewer.a"
    subprocess.run([f"{prefix}ar", "rcs", archive, *sorted(parts.iterdir())], check=True)
    return archive


def prepare(architecture: str, folder: Path) -> Path:
    """Write the compiler into a new folder, and return its path.

    Raises:
        SystemExit: The system has no compiler for the architecture.
    """
    is_native = architecture == os.uname().machine
    prefix = "" if is_native else f"{architecture}-linux-gnu-"
    compiler = f"{prefix}g++"
    if shutil.which(compiler) is None:
        raise SystemExit(f"{compiler} is missing: apt-get install g++-{architecture}-linux-gnu")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    older = folder / "glibc_2_28.o"
    source = ROOT / "cmake" / "glibc_2_28.c"
    subprocess.run([f"{prefix}gcc", "-O2", "-fPIC", "-c", source, "-o", older], check=True)
    newer = newer_members(compiler, prefix, folder)
    libraries = [
        older,
        newer,
        "-lstdc++",
        "-l:libstdc++.a",
        "-lgcc_s",
        "-lgcc",
        *stubs(architecture, folder),
    ]
    # Members are used by section, of which most have symbols of GCC 8 as well.
    linking = "-nodefaultlibs -Wl,--gc-sections,--exclude-libs,ALL,--as-needed"
    flags = " ".join([linking, *map(str, libraries)])
    wrapper = folder / "c++"
    wrapper.write_text(WRAPPER.format(compiler=compiler, flags=flags))
    wrapper.chmod(0o755)
    return wrapper


if __name__ == "__main__":
    print(prepare(sys.argv[1], Path(sys.argv[2]).absolute()))
