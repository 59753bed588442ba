"""Objects left in a real kernel by views that are rerun, reloaded or shown by two notebooks."""

import json

import pytest

from tests.integration.notebook.kernel import running_kernel

SETUP = """
%load_ext gpuviz
import collections, comm, gc, json, threading
import gpuviz, gpuviz.notebook.dashboard, gpuviz.notebook.timeline, ipywidgets
from gpuviz.notebook.findings import Findings
from gpuviz.simulation.arrays import SimulatedArray
gpu = gpuviz.SimulatedGPU()
KINDS = ("Dashboard", "Timeline", "Recorder", "Recording", "SimulatedArray")

# To list an object that another thread is making would be an error there, so this one computes.
Findings._tick = lambda self: True

def compute_findings():
    for each in list(ipywidgets.widgets.widget._instances.values()):
        if isinstance(each, gpuviz.notebook.dashboard.Dashboard):
            each._findings.request(at_once=True)
            each._findings.refresh_if_due()

def left():
    compute_findings()
    # Finalizers, which all widgets have, run at the first; what they revived goes later.
    for _ in range(3):
        gc.collect()
    objects = collections.Counter(type(each).__name__ for each in gc.get_objects())
    threads = sorted(t.name for t in threading.enumerate() if t.name.startswith("gpuviz"))
    return {kind: objects[kind] for kind in KINDS if objects[kind]} | {
        "threads": threads,
        "comms": len(comm.get_comm_manager().comms),
        "widgets": len(ipywidgets.widgets.widget._instances),
        "at cell ends": len(get_ipython().events.callbacks["post_run_cell"]),
    }
"""
PROGRAM = """
arrays = [gpu.empty(1 << 20) for _ in range(50)]
gpu.launch("scale", reads=arrays[:1], writes=arrays[1:2], duration=1e-3)
gpu.synchronize()
"""


class Notebook:
    """One of the notebooks on a kernel; its cells have ids."""

    def __init__(self, kernel, name):
        self.kernel = kernel
        self.name = name

    def run(self, cell, number=0):
        client = self.kernel.client
        content = {"code": cell, "silent": False, "store_history": True, "user_expressions": {}}
        message = client.session.msg("execute_request", content)
        message["metadata"] = {"cellId": f"{self.name}-{number}"}
        client.shell_channel.send(message)
        outputs = self.kernel.wait(message["header"]["msg_id"])
        assert (outputs.status, outputs.errors) == ("ok", [])
        return outputs

    def left(self):
        return json.loads(self.run("print(json.dumps(left()))").streams)


@pytest.fixture
def kernel():
    with running_kernel() as kernel:
        assert kernel.run(SETUP).status == "ok"
        yield kernel


def record(notebook):
    notebook.run("%gpuviz start --simulated gpu", 1)
    notebook.run(PROGRAM, 2)
    notebook.run("recording = %gpuviz stop", 3)
    notebook.run("del arrays, recording", 4)


def test_nothing_is_left_of_dashboards_of_two_notebooks_when_the_extension_is_reloaded(kernel):
    first, second = Notebook(kernel, "first"), Notebook(kernel, "second")
    before = first.left()
    first.run("%gpuviz dashboard")
    second.run("%gpuviz dashboard")
    record(first)
    record(second)
    both = second.left()
    second.run("%reload_ext gpuviz", 5)

    assert both["Dashboard"] == 2
    assert both["threads"] == ["gpuviz-dashboard"] * 4
    assert first.left() == before


def test_a_cell_that_is_run_again_leaves_nothing_of_its_earlier_runs(kernel):
    notebook = Notebook(kernel, "only")
    record(notebook)
    notebook.run("%gpuviz dashboard")
    once = notebook.left()
    for _ in range(5):
        notebook.run("%gpuviz dashboard")

    assert notebook.left() == once


@pytest.mark.parametrize("shown", ["recorder", "recorder.recording"])
def test_a_timeline_that_is_run_again_leaves_nothing_of_its_earlier_runs(kernel, shown):
    notebook = Notebook(kernel, "only")
    notebook.run("gpuviz.notebook.timeline._SET_UP_S = 0.5", 0)
    notebook.run("recorder = gpuviz.record(device=gpu)\nrecorder.start()", 1)
    notebook.run(f"{PROGRAM}\nrecorder.stop();", 2)
    notebook.run(f"display(gpuviz.notebook.timeline.Timeline({shown}))")
    once = notebook.left()
    for _ in range(5):
        notebook.run(f"display(gpuviz.notebook.timeline.Timeline({shown}))")
    # A page may still be setting up a new widget, so it is closed later.
    notebook.run("import time\nwhile len(gpuviz.notebook.timeline._open) > 1: time.sleep(0.01)")

    assert notebook.left() == once


def test_a_measured_cell_leaves_only_what_it_shows(kernel):
    notebook = Notebook(kernel, "only")
    cell = f"%%gpuviz --simulated gpu\n{PROGRAM}\ndel arrays"
    notebook.run(cell)
    once = notebook.left()
    for _ in range(5):
        notebook.run(cell)

    assert notebook.left() == once
