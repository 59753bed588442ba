"""Fetching recordings, interrupted at any line: each is fetched, or still on its worker's disk."""

import asyncio
import inspect
import re
import shutil
from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz.dask.transfer import Transfer
from tests.faults import Fault

NAMES = ("a@1.gpuviz", "b@1.gpuviz")

# Of coroutines that were made, but not started, when the fault came.
pytestmark = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:coroutine .* was never awaited"
)


class Client:
    """Runs functions on two workers that share a disk."""

    def __init__(self, scratch):
        self._workers = {
            name: SimpleNamespace(local_directory=str(scratch / name)) for name in ("w0", "w1")
        }

    async def run(self, function, *arguments, workers=None, on_error="raise"):
        del on_error
        answers = {}
        for name in workers or self._workers:
            answer = function(*arguments, dask_worker=self._workers[name])
            answers[name] = await answer if inspect.isawaitable(answer) else answer
        return answers


def recorded():
    with gpuviz.record(device=gpuviz.SimulatedGPU(1 << 30)) as recorder:
        pass
    return recorder.recording


def fetched(scratch, directory):
    transfer = Transfer(Client(scratch), directory)
    asyncio.run(transfer.fetch(None))
    return transfer


def on_disk(folder):
    """Return the workers with a recording; one that was fetched twice is ``b`` and ``b-2``."""
    return {re.split("[-@.]", path.name)[0] for path in folder.glob("[!.]*.gpuviz")}


@pytest.mark.parametrize("kind", [MemoryError, ConnectionResetError, asyncio.CancelledError])
def test_an_interrupted_fetch_loses_no_recording(kind, tmp_path):
    saved, fault = recorded().save(tmp_path / "saved.gpuviz"), Fault(kind, "/gpuviz/dask/")
    calls = 0
    for line in fault.lines():
        scratch, directory = tmp_path / f"{line}-scratch", tmp_path / f"{line}-fetched"
        directory.mkdir()
        run = scratch / "gpuviz" / "run"
        run.mkdir(parents=True)
        for name in NAMES:
            shutil.copy(saved, run / name)
        paths = []

        with fault.armed(line):
            paths += fetched(scratch, directory).paths
        assert on_disk(directory) | on_disk(run) == {"a", "b"}
        assert all(gpuviz.load(path).manifest.complete for path in directory.glob("[!.]*"))

        again = fetched(scratch, directory)
        assert on_disk(directory) == {"a", "b"}
        assert not run.exists()
        assert again.problems_by_worker == {}
        calls += 1
    assert calls > 50


@pytest.mark.parametrize("error", [OSError("the worker is gone"), KeyError("w0")])
def test_a_recording_that_arrived_counts_whatever_happens_to_its_copy(error, tmp_path, monkeypatch):
    run = tmp_path / "gpuviz" / "run"
    run.mkdir(parents=True)
    recorded().save(run / NAMES[0])

    def fail(*_):
        raise error

    monkeypatch.setattr("gpuviz.dask.worker_files.remove", fail)
    transfer = fetched(tmp_path, tmp_path)

    assert [path.name for path in transfer.paths] == ["a.gpuviz"]
    assert transfer.problems_by_worker == {}
