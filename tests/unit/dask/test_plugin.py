"""The plugin of a worker, without a cluster."""

import asyncio
import threading
from types import SimpleNamespace

import gpuviz
from gpuviz.dask.plugin import RecordingPlugin


def new_worker(folder, events):
    return SimpleNamespace(
        name="w",
        ip="127.0.0.1",
        local_directory=str(folder / "worker"),
        active_threads={},
        metrics={},
        log_event=lambda topic, event: events.append((topic, event)),
    )


def test_a_recording_that_is_to_end_while_it_starts_ends(tmp_path):
    events, may_start = [], threading.Event()
    worker = new_worker(tmp_path, events)

    def gpu():
        may_start.wait()
        return gpuviz.SimulatedGPU(1 << 30)

    async def end_while_starting():
        plugin = RecordingPlugin("run", None, {"device": gpu})
        starting = asyncio.create_task(plugin.setup(worker))
        await asyncio.sleep(0)
        ending = asyncio.create_task(plugin.teardown(worker))
        await asyncio.sleep(0)
        may_start.set()
        await asyncio.gather(starting, ending)

    asyncio.run(end_while_starting())

    (path,) = (tmp_path / "gpuviz" / "run").iterdir()
    (_, started), *_, (topic, last) = events
    assert (started["path"], started["problem"]) == (str(path), "")
    assert (topic, last["ended"]) == ("gpuviz-memory", True)
    assert gpuviz.load(path).manifest.complete
    assert gpuviz.Recorder.active() is None
    assert worker.metrics == {}


def test_a_recording_whose_start_is_canceled_ends(tmp_path):
    starts, may_start = threading.Event(), threading.Event()
    worker = new_worker(tmp_path, [])

    def gpu():
        starts.set()
        may_start.wait()
        return gpuviz.SimulatedGPU(1 << 30)

    async def cancel_and_end():
        plugin = RecordingPlugin("run", None, {"device": gpu})
        starting = asyncio.create_task(plugin.setup(worker))
        await asyncio.to_thread(starts.wait)
        starting.cancel()
        ending = asyncio.create_task(plugin.teardown(worker))
        await asyncio.sleep(0.01)
        may_start.set()
        await asyncio.gather(starting, ending, return_exceptions=True)

    asyncio.run(cancel_and_end())

    (path,) = (tmp_path / "gpuviz" / "run").iterdir()
    assert gpuviz.load(path).manifest.complete
    assert gpuviz.Recorder.active() is None
