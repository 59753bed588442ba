"""Installs a wheel into new environments, and uses it where there is nothing else.

Usage: python -m scripts.test_wheel [--save FILE] WHEEL [PYTHON ...]

Each environment is used in a sandbox of bubblewrap that has the system's libraries, Python and the
environment, and neither a compiler, nor Node, nor a GPU, nor a network. There is one with the
newest dependencies for each Python, and for the first also one with the oldest that are allowed,
and one with the extra ``cuda13`` and nothing but a driver, which `tests/imitated_driver.c`
imitates.
Exits with 1 after the first that fails or takes too long; ``--save`` writes the times for
`scripts.generate_performance`.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

from tests.benchmarks.__main__ import Row, save

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tests" / "clean_environment.py"
DRIVER = ROOT / "tests" / "imitated_driver.c"
# Of waiting for the installation, and of everything until the first report of a program.
BOUND_INSTALLED_S = 90
BOUND_REPORT_S = 60
# What a Python needs outside its environment: its executable, its library, and its modules.
PARTS = """
import sys, sysconfig
from pathlib import Path
executable = Path(sys.executable)
parts = {executable, executable.resolve(), Path(sysconfig.get_path("stdlib"))}
libraries = Path(sysconfig.get_config_var("LIBDIR"))
print(*parts, *libraries.glob(f"libpython{sysconfig.get_python_version()}.so*"), sep="\\n")
"""


def run(*command: str | Path) -> str:
    """Run a command, and return what it prints; show that and exit if it fails."""
    done = subprocess.run(
        [*map(str, command)],
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{Path(command[0]).name} failed: {' '.join(map(str, command))}")
    return done.stdout


def oldest(wheel: Path) -> Iterator[str]:
    """Yield the release of the lower bound of each dependency of the wheel."""
    archive = zipfile.ZipFile(wheel)
    [path] = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
    for line in message_from_bytes(archive.read(path)).get_all("Requires-Dist", []):
        bound = re.fullmatch(r"([\w.-]+)>=([\w.]+)", line)
        if bound:
            yield f"{bound[1]}=={bound[2]}.*"


def sandbox(python: str, place: Path, **variables: str) -> list[str]:
    """Return the command that runs a command in the environment, and sees nothing else."""
    libraries = [*Path("/usr/lib").glob("*-linux-gnu"), Path("/usr/lib64"), Path("/lib64")]
    parts = [*libraries, *map(Path, run(python, "-c", PARTS).splitlines())]
    command = ["bwrap", "--unshare-all", "--die-with-parent", "--clearenv"]
    for name in ("lib", "lib64"):
        top = Path("/", name)
        if top.is_symlink():
            command += ["--symlink", str(top.readlink()), str(top)]
    for part in parts:
        if part.exists() and not part.is_relative_to("/lib64"):
            command += ["--ro-bind", str(part), str(part)]
    for part in parts:
        if (part / "site-packages").exists():
            command += ["--tmpfs", str(part / "site-packages")]
    command += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp"]  # noqa: S108
    command += ["--bind", str(place), str(place), "--chdir", str(place)]
    given = {"HOME": str(place), "PATH": f"{place / 'bin'}:/usr/bin:/bin", **variables}
    for name, value in given.items():
        command += ["--setenv", name, value]
    return command


def size_of(place: Path) -> int:
    """Return the bytes of all files of a folder."""
    return sum(each.lstat().st_size for each in place.rglob("*"))


def install(python: str, place: Path, wheel: str, constraints: list[str]) -> tuple[float, float]:
    """Install a wheel into a new environment.

    Returns:
        How long that took in seconds, and by how many MB the environment has grown.
    """
    begin = time.monotonic()
    shutil.rmtree(place, ignore_errors=True)
    run(python, "-m", "venv", place)
    empty = size_of(place)  # with pip
    chosen = place / "constraints"
    chosen.write_text("\n".join(constraints))
    pip = [place / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install"]
    run(*pip, "-q", "--only-binary", ":all:", "--constraint", chosen, wheel)
    grown_mb = (size_of(place) - empty) / 1e6
    shutil.copy(PROGRAM, place)
    return time.monotonic() - begin, grown_mb


def used(python: str, place: Path, step: str, **variables: str) -> float:
    """Run the steps of `tests/clean_environment.py`; return how long they took."""
    begin = time.monotonic()
    command = [*sandbox(python, place, **variables), str(place / "bin" / "python"), "-P"]
    done = subprocess.run([*command, PROGRAM.name, step], check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)
    return time.monotonic() - begin


def environments(wheel: Path, pythons: list[str], folder: Path) -> Iterator[Row]:
    """Try a wheel in each environment; yield how long a report took, and how much was installed."""
    kinds = [(pythons[0], "oldest", [*oldest(wheel)]), *((each, "newest", []) for each in pythons)]
    for number, (python, name, constraints) in enumerate(kinds):
        title = f"{run(python, '--version').strip()}, {name} dependencies"
        print(f"== {title}", flush=True)
        place = folder / str(number)
        waited, size = install(python, place, str(wheel), constraints)
        took = used(python, place, "report")
        yield row(f"{title}: installed ({size:.0f} MB)", waited, BOUND_INSTALLED_S)
        yield row(f"{title}: then a program's first report", took, BOUND_REPORT_S)
        used(python, place, "rest")
        shutil.rmtree(place)


def driver_only(wheel: Path, python: str, folder: Path) -> Iterator[Row]:
    """Try CUDA's libraries from wheels where the system has only a driver, which is imitated."""
    title = f"{run(python, '--version').strip()}, cuda13, only a driver (imitated)"
    print(f"== {title}", flush=True)
    place = folder / "driver"
    waited, _ = install(python, place, f"{wheel}[cuda13]", [])
    run("cc", "-shared", "-fPIC", "-o", place / "libcuda.so.1", DRIVER)
    took = used(python, place, "driver", LD_LIBRARY_PATH=str(place))
    # CUDA's libraries are 2 GB, so how long that takes depends on the network.
    yield f"{title}: installed", "no bound", f"{waited:.0f} s", True
    yield row(f"{title}: then a report of its memory", took, BOUND_REPORT_S)


def row(what: str, taken_s: float, bound_s: float) -> Row:
    """Return a row of the table, and print it."""
    print(f"{what}: {taken_s:.1f} s, at most {bound_s} s", flush=True)
    return what, f"{bound_s} s", f"{taken_s:.1f} s", taken_s <= bound_s


def main() -> int:
    """Try the wheel; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m scripts.test_wheel")
    parser.add_argument("--save", type=Path, metavar="FILE")
    parser.add_argument("wheel", type=Path, metavar="WHEEL")
    parser.add_argument("pythons", nargs="*", metavar="PYTHON")
    given = parser.parse_args()
    wheel = given.wheel.absolute()
    base = "import sys; print(sys._base_executable)"
    pythons = [run(each, "-c", base).strip() for each in given.pythons or ["python3"]]
    if shutil.which("bwrap") is None:
        run(ROOT / "scripts" / "install-packages", "bubblewrap")
    print(f"{wheel.name}: {wheel.stat().st_size / 1000:.0f} kB")
    with tempfile.TemporaryDirectory() as folder:
        rows = [*environments(wheel, pythons, Path(folder))]
        rows += driver_only(wheel, pythons[0], Path(folder))
    if given.save is not None:
        save(given.save, rows, command="python -m scripts.test_wheel", uses_gpu=False)
    return 0 if all(is_within for *_, is_within in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
