"""JupyterLab's panel with a kernel on a real GPU while a cell runs."""

import os

import pytest

import gpuviz
from tests.integration.notebook.kernel import SAY_BEGUN, running_kernel
from tests.integration.notebook.panel_page import Page

pytestmark = pytest.mark.gpu

SETUP = "import time, gpuviz, cupy as cp; cp.zeros(10).sum(); import os; print(os.getpid())"
PROGRAM = f"""
{SAY_BEGUN}
kept = []
while True:
    kept.append(cp.ones(1 << 20, dtype=cp.float32))
    for _ in range(20):
        kept[-1] += 1
    cp.cuda.Device().synchronize()
    time.sleep(0.1)
"""


def test_the_panel_records_a_running_program_and_writes_it_down(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with running_kernel() as kernel:
        pid = int(kernel.run(SETUP).streams)
        page = Page(kernel)
        page.offer()
        page.open()
        page.ask("show")
        cell = kernel.begin(PROGRAM)
        page.ask("start")
        started = page.answer("start")
        state = page.next()
        while not state["devices"] or state["devices"][0]["allocated"] <= 4 << 20:
            state = page.next()
        page.ask("snapshot", path="run.gpuviz")
        saved = page.answer("snapshot")
        page.ask("stop")
        stopped = page.answer("stop")
        kernel.manager.interrupt_kernel()
        kernel.wait(cell)
    (device,) = state["devices"]
    total = state["totals"][0]
    recording = gpuviz.load(tmp_path / "run.gpuviz")

    assert [each["failed"] for each in (started, saved, stopped)] == [False, False, False]
    assert 0 < device["busy"] < 1
    assert 0 < total["used"] < total["total"]
    assert pid != os.getpid()
    assert recording.table("activities").num_rows > 20
    assert recording.memory_stats()["allocated_bytes.all.current"] > 4 << 20
