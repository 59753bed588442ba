"""The profiles of Hypothesis, and the wheel, built once for all tests."""

import fcntl
import gc
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import settings

from tests.examples import register_profiles
from tests.leftovers import collect_simulated_gpus

ROOT = Path(__file__).parent.parent

# The beginning of the name of a folder on PATH, with a `cmake` that does nothing.
NOTHING_TO_BUILD = "nothing-to-build-"

register_profiles()
# Modules decide when they are imported; `--hypothesis-profile` is read before that.
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "fast"))

# A process started with `&` or by nohup ignores these signals, and so do its child processes.
# Signals with a handler here have their default action in child processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, lambda *_: None)


def pytest_configure(config: pytest.Config) -> None:
    """Build what changed now, once; it takes each process that a test starts 0.2 s to look."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        return
    import gpuviz._core  # noqa: F401

    folder = tempfile.TemporaryDirectory(prefix=NOTHING_TO_BUILD)
    config.add_cleanup(folder.cleanup)
    os.environ["XDG_DATA_HOME"] = str(Path(folder.name) / "data")
    os.environ["PATH"] = path_with_nothing_to_build(Path(folder.name))


def path_with_nothing_to_build(folder: Path) -> str:
    """Return a PATH with a `cmake` in this folder, by which an editable gpuviz is up to date."""
    (folder / "cmake").symlink_to("/bin/true")
    return os.pathsep.join([str(folder), os.environ["PATH"]])


@pytest.fixture(scope="module", autouse=True)
def _small_heap() -> None:
    """Exclude what is already loaded from garbage collections, which a failed request starts."""
    collect_simulated_gpus()
    gc.freeze()


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel in an isolated environment, without node and npm; all workers share one.

    It is built as for a release, but not optimized: that takes time, and no test depends on it.
    """
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent  # of all workers of this run
    folder /= "wheel"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not any(folder.glob("*.whl")):
            build_wheel(folder)
    return next(folder.glob("*.whl"))


def build_wheel(folder: Path) -> None:
    programs = folder / "bin"
    programs.mkdir()
    for place in map(Path, os.environ["PATH"].split(os.pathsep)):
        is_searched = place.is_dir() and not place.name.startswith(NOTHING_TO_BUILD)
        for program in place.iterdir() if is_searched else ():
            link = programs / program.name
            if program.name not in {"node", "nodejs", "npm", "npx"} and not link.is_symlink():
                link.symlink_to(program)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "-q",
        "--no-deps",
        "-C",
        f"build-dir={folder / 'build'}",  # compiled by the programs of that folder
        "-C",
        "cmake.define.CMAKE_MODULE_LINKER_FLAGS=-Werror=odr",
        "-C",
        "cmake.build-type=Debug",
        "-C",
        "cmake.define.CMAKE_CXX_FLAGS_DEBUG=-O0",
        "-C",
        "install.strip=true",
        "-w",
        str(folder),
        str(ROOT),
    ]
    environment = {**os.environ, "PATH": str(programs)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first test that needs the wheel the time to build it."""
    for item in items:
        if "wheel" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(1200))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    name = settings.get_current_profile_name()
    if name == "full":
        terminalreporter.write_line("Property tests drew the examples of the profile `full`")
