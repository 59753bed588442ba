"""Compiles C++ for systems with glibc 2.28, by this system's GCC.

Usage: python -m scripts.old_glibc ARCHITECTURE FOLDER, with x86_64 or aarch64, writes the compiler
FOLDER/c++; python -m scripts.old_glibc --check ARCHITECTURE WHEEL exits with 1 if a library in the
wheel needs a newer symbol than such systems have, or a library that not all of them have.

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
from tempfile import TemporaryDirectory
from zipfile import ZipFile

ROOT = Path(__file__).parents[1]
GLIBC = "2.28"
# The newest versions of symbols in a manylinux_2_28 wheel, and the libraries that it may need.
NEWEST = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (8, 0, 0)}
PRESENT = {f"lib{name}" for name in ("stdc++.so.6", "gcc_s.so.1", "m.so.6", "c.so.6")} | {
    *("libpthread.so.0", "libdl.so.2", "librt.so.1"),
    *("ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"),
}
_VERSIONED = re.compile(r"\(?(GLIBC|GLIBCXX|CXXABI|GCC)_([\d.]+)\)?\s+(\S+)$")
_NEEDED = re.compile(r"\(NEEDED\)\s+Shared library: \[(.*)\]")
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


def prefix_of(architecture: str) -> str:
    """Return what the names of the tools for an architecture begin with."""
    return "" if architecture == os.uname().machine else f"{architecture}-linux-gnu-"


def newer_symbols(prefix: str, library: Path) -> set[str]:
    """Return the symbols of a library whose versions systems with this glibc do not have."""
    found = map(_VERSIONED.search, output(f"{prefix}objdump", "-T", library).splitlines())
    return {
        each[3] for each in found if each and tuple(map(int, each[2].split("."))) > NEWEST[each[1]]
    }


def problems(architecture: str, wheel: Path) -> list[str]:
    """Return what the libraries in a wheel need and older systems lack."""
    prefix = prefix_of(architecture)
    found = []
    with TemporaryDirectory() as folder, ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.endswith(".so"):
                continue
            library = Path(archive.extract(name, folder))
            header = output(f"{prefix}readelf", "-h", "-d", library)
            if architecture.replace("x86_64", "x86-64").lower() not in header.lower():
                found.append(f"{name} is not for {architecture}")
            needed = {*_NEEDED.findall(header)} - PRESENT
            found += [f"{name} needs {each}" for each in sorted(newer_symbols(prefix, library))]
            found += [f"{name} needs {each}" for each in sorted(needed)]
    return found


def newer_members(compiler: str, prefix: str, folder: Path) -> Path:
    """Write an archive of the parts of libstdc++ that its version of GCC 8 does not have."""
    shared, static = (
        Path(output(compiler, f"-print-file-name=libstdc++.{end}").strip()).resolve()
        for end in ("so", "a")
    )
    newer = newer_symbols(prefix, shared)
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
    prefix = prefix_of(architecture)
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
    if sys.argv[1] == "--check":
        lacking = problems(sys.argv[2], Path(sys.argv[3]))
        print(*lacking, sep="\n")
        sys.exit(bool(lacking))
    print(prepare(sys.argv[1], Path(sys.argv[2]).absolute()))
