"""The plugin of a worker, without a cluster."""

import asyncio
import threading
from types import SimpleNamespace

import gpuviz
from gpuviz.dask.plugin import RecordingPlugin


def test_a_recording_that_is_to_end_while_it_starts_ends(tmp_path):
    events, may_start = [], threading.Event()
    worker = SimpleNamespace(
        name="w",
        ip="127.0.0.1",
        local_directory=str(tmp_path / "worker"),
        active_threads={},
        metrics={},
        log_event=lambda topic, event: events.append((topic, event)),
    )

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
