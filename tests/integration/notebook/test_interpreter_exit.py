"""The end of an interpreter whose views are still open; Python deletes them after its threads."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PRELUDE = """\
import gpuviz, time
from gpuviz.notebook.control import shared_control
from gpuviz.notebook.panel import shared_panel
from gpuviz.notebook.timeline import Timeline
from tests.unit.notebook.fake_browser import FakeBrowser, FakeComm

import comm
comm.create_comm = FakeComm
gpu = gpuviz.SimulatedGPU()

def work():
    kept = [gpu.empty(1 << 20) for _ in range(20)]
    gpu.launch("scale", reads=kept[:1], writes=kept[1:2], duration=1e-3)
    gpu.synchronize()
    return kept
"""
VIEWS = {
    "a dashboard of a recording in progress": """
    shared_control().start(device=gpu)
    view = gpuviz.dashboard()
    kept = work()
    time.sleep(0.6)
    """,
    "a dashboard of a recording that has ended": """
    with gpuviz.record(device=gpu) as recorder:
        work()
    view = gpuviz.dashboard(recorder)
    view.refresh()
    """,
    "a dashboard of a file": """
    with gpuviz.record(device=gpu) as recorder:
        work()
    view = gpuviz.dashboard(recorder.recording)
    """,
    "a dashboard that was closed": """
    shared_control().start(device=gpu)
    view = gpuviz.dashboard()
    kept = work()
    view.close()
    """,
    "a timeline that a page shows": """
    shared_control().start(device=gpu)
    view = Timeline(shared_control().recorder)
    browser = FakeBrowser(view)
    browser.show()
    kept = work()
    time.sleep(0.3)
    """,
    "a dashboard whose timeline a page shows": """
    shared_control().start(device=gpu)
    view = gpuviz.dashboard()
    browser = FakeBrowser(view)
    browser.show()
    kept = work()
    time.sleep(0.6)
    """,
    "the panel of JupyterLab": """
    shared_control().start(device=gpu)
    class Page(comm.base_comm.BaseComm):
        def publish_msg(self, *_arguments, **_options):
            pass
    page = Page(target_name="gpuviz.notebook")
    shared_panel().open(page, {})
    page.handle_msg({"content": {"data": {"kind": "show", "viewer": "page"}}})
    kept = work()
    time.sleep(0.3)
    """,
    "cells in a shell": """
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets.config import Config
    config = Config()
    config.HistoryManager.enabled = False
    shell = InteractiveShell.instance(config=config)
    shell.user_ns["gpu"] = gpu
    for cell in (
        "%load_ext gpuviz",
        "%gpuviz start --simulated gpu",
        "import gpuviz; gpuviz.dashboard()",
        "kept = [gpu.empty(1 << 20) for _ in range(20)]",
    ):
        shell.run_cell(cell, store_history=True).raise_error()
    """,
}


@pytest.mark.parametrize("program", VIEWS.values(), ids=VIEWS)
def test_an_interpreter_with_an_open_view_ends(program):
    ended = subprocess.run(
        [sys.executable, "-c", PRELUDE + textwrap.dedent(program)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    "work",
    [
        pytest.param("sum(range(1000))", id="one that checks whether to end"),
        pytest.param("while True: sum(range(1000))", id="one that never checks"),
    ],
)
def test_a_thread_of_a_view_has_ended_before_the_interpreter_deletes_modules(work):
    program = f"""
        import atexit, threading, time
        from gpuviz.notebook.background import start_thread

        asked = threading.Event()
        def run():
            while not asked.is_set():
                {work}

        atexit.register(lambda: print(thread.is_alive(), asked.is_set()))
        thread = start_thread("worker", run, asked.set)
        """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "False True\n", "")


def test_the_child_of_a_fork_does_not_wait_for_a_lock_of_a_view():
    program = """
        import os, sys, threading
        from gpuviz.notebook.background import start_thread

        lock, has_lock, over = threading.Lock(), threading.Event(), threading.Event()
        def run():
            with lock:
                has_lock.set()
                over.wait()
        def ask():
            over.set()
            with lock:
                pass

        start_thread("worker", run, ask)
        has_lock.wait()
        child = os.fork()
        if child == 0:
            sys.exit(3)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """
    ended = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "3\n", "")
