"""Ctrl-C in a real kernel while a dashboard follows a recording."""

import json
import random
import time

import gpuviz
from tests.integration.notebook.kernel import SAY_BEGUN, running_kernel

INTERRUPTS = 20
SETUP = """
import gpuviz
from gpuviz.recorder.recorder import Recorder
%load_ext gpuviz
gpu, kept, launched, number = gpuviz.SimulatedGPU(), [], [], 0
"""
# Views are read on this thread too, so that interrupts meet each step of it.
BUSY = f"""
{SAY_BEGUN}
while True:
    number += 1
    exec(compile("\\n" * number + "kept.append(gpu.empty(512))", "program.py", "exec"))
    gpu.launch(f"kernel {{number}}", writes=kept[-1:], duration=1e-6)
    launched.append(number)
    if number % 5 == 0:
        shown.refresh()
"""
STOP = """
recording = %gpuviz stop
stopped = Recorder.latest().stop()
"""
SAVE = """
import json
recording.save({path!r})
assert stopped.tables == recording.tables
status = Recorder.latest().status()
print(json.dumps([launched, gpu.memory_stats()["allocation.all.allocated"], status.dropped,
                  status.dropped_activities]))
"""


def test_a_recording_with_a_live_dashboard_survives_interrupts(tmp_path):
    draw = random.Random(7)
    path = tmp_path / "run.gpuviz"
    counts = []
    with running_kernel() as kernel:
        assert kernel.run(SETUP).status == "ok"
        assert kernel.run("%gpuviz start --simulated gpu").status == "ok"
        assert kernel.run("shown = gpuviz.dashboard()\nshown").status == "ok"
        kernel.run("[timeline] = gpuviz.notebook.timeline._open\ntimeline._viewers.add('page')")
        for _ in range(INTERRUPTS):
            message = kernel.begin(BUSY)
            time.sleep(draw.uniform(0.1, 0.3))
            kernel.manager.interrupt_kernel()
            assert kernel.wait(message).errors == ["KeyboardInterrupt"]
            alive = kernel.run("print(Recorder.active().is_recording, len(launched))")
            is_recording, count = alive.streams.split()
            assert is_recording == "True"
            counts.append(int(count))
        assert kernel.run(STOP).errors == []
        saved = kernel.run(SAVE.format(path=str(path)))

    assert saved.errors == []
    launched, allocated, *dropped = json.loads(saved.streams)
    recording = gpuviz.load(path)
    texts = {row["id"]: row["text"] for row in recording.table("strings").to_pylist()}
    kernels = [texts[name] for name in recording.table("activities")["name"].to_pylist()]
    assert counts == sorted(set(counts))
    assert dropped == [0, 0]
    assert recording.manifest.complete
    assert {f"kernel {number}" for number in launched} <= set(kernels)
    assert len(kernels) == len(set(kernels))
    assert recording.memory_stats()["allocation.all.allocated"] == allocated
