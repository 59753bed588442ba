"""The profiles of Hypothesis, and the wheel and the site, built once for all tests."""

import fcntl
import gc
import os
import signal
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings

from tests.documentation_site import build_site
from tests.examples import register_profiles
from tests.leftovers import collect_simulated_gpus
from tests.wheels import NOTHING_TO_BUILD, build_wheel, stripped_core

MOST_OBJECTS = "gpuviz.ownership.held_at_end._MOST_OBJECTS"

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


@pytest.fixture(scope="session", autouse=True)
def _no_search_for_holders() -> Iterator[None]:
    """Look for holders at the end of a recording only in programs, and in tests about that.

    A worker has half a million objects, which each test with a recording would visit.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MOST_OBJECTS, 0)
        yield


@pytest.fixture
def search_for_holders(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for holders at the end of a recording among the objects of a suite, too."""
    monkeypatch.setattr(MOST_OBJECTS, 1 << 30)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a wheel as for a release, with the core of the editable build."""
    with shared_folder(tmp_path_factory, "wheel") as folder:
        if not any(folder.glob("*.whl")):
            build_wheel(folder, f"GPUVIZ_CORE={stripped_core(folder)}")
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the documentation site."""
    with shared_folder(tmp_path_factory, "site") as folder:
        if not (folder / "built").exists():
            build_site(folder)
            (folder / "built").touch()
    return folder / "html"


@contextmanager
def shared_folder(tmp_path_factory: pytest.TempPathFactory, name: str) -> Iterator[Path]:
    """Yield a folder that all workers of this run share, to one of them at a time."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    folder /= name
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the first test that needs the wheel or the site the time to build it."""
    for item in items:
        if {"wheel", "site"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.timeout(1200))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    name = settings.get_current_profile_name()
    if name == "full":
        terminalreporter.write_line("Property tests drew the examples of the profile `full`")
