"""Requests of JupyterLab's panel to a real kernel, on a subshell, and its replies."""

from collections.abc import Iterator
from itertools import pairwise
from textwrap import indent

import pytest

from tests.integration.notebook.kernel import Kernel, running_kernel
from tests.integration.notebook.panel_page import Page
from tests.patience import wait_until

SIMULATED = """
import time, gpuviz
from gpuviz.notebook.control import shared_control
gpu = gpuviz.SimulatedGPU()
shared_control().start(device=gpu)
"""
BUSY = """
blocks.append(gpu.empty(1 << 20))
gpu.launch("work", writes=[blocks[-1]], duration=0.05)
time.sleep(0.1)
"""


@pytest.fixture
def kernel(tmp_path, monkeypatch) -> Iterator[Kernel]:
    monkeypatch.chdir(tmp_path)
    with running_kernel() as kernel:
        yield kernel


def test_a_kernel_without_gpuviz_says_so_and_is_left_as_it_was(kernel):
    page = Page(kernel)

    assert page.offer() == "None"
    assert kernel.run("import sys; print('gpuviz' in sys.modules)").streams == "False\n"


def test_a_page_sees_memory_and_busy_share_once_a_second_while_a_cell_runs(kernel, tmp_path):
    kernel.run(f"{SIMULATED}blocks = []")
    page = Page(kernel)
    assert "0.1" in page.offer()
    page.open()
    may_end = tmp_path / "may_end"
    cell = begin_cell(kernel, tmp_path / "begun", may_end, during=BUSY)
    page.ask("show")
    states = [page.next() for _ in range(4)]
    may_end.touch()
    kernel.wait(cell)
    times_ns = [each["elapsedNs"] for each in states]
    allocated = [each["devices"][0]["allocated"] for each in states if each["devices"]]

    assert {each["kind"] for each in states} == {"state"}
    assert min(after - before for before, after in pairwise(times_ns)) > 800_000_000
    assert allocated == sorted(set(allocated))
    assert states[-1]["recording"] is True
    assert 0 < states[-1]["devices"][0]["busy"] < 0.8
    assert [name for name, _, _ in states[-1]["numbers"]] == ["Allocated", "Reserved", "GPU busy"]


def test_a_page_that_asks_and_opens_again_gets_each_state_once(kernel):
    kernel.run(SIMULATED)
    page = Page(kernel)
    for _ in range(2):
        page.offer()
        page.open()
        page.ask("show")
    times_ns = [page.next()["elapsedNs"] for _ in range(4)]

    assert min(after - before for before, after in pairwise(times_ns)) > 800_000_000


def test_a_page_that_hides_is_told_nothing_more_and_no_thread_stays(kernel):
    kernel.run(SIMULATED)
    page = Page(kernel)
    page.offer()
    page.open()
    page.ask("show")
    page.next()
    page.ask("hide")
    threads = "import threading; print([t.name for t in threading.enumerate()])"
    wait_until(lambda: "gpuviz-panel" not in kernel.run(threads).streams)
    while_hidden = kernel.run("time.sleep(2)  # twice as long as between two states")

    assert while_hidden.widget_values == []


def begin_cell(kernel, begun, may_end, rest="", during="time.sleep(0.01)"):
    """Begin a cell that waits for the file `may_end` before the rest; return its message's id."""
    cell = kernel.client.execute(
        f"import time\nfrom pathlib import Path\nPath({str(begun)!r}).touch()\n"
        f"while not Path({str(may_end)!r}).exists():\n{indent(during, '    ')}\n{rest}"
    )
    wait_until(begun.exists)
    return cell


def test_a_page_stops_and_saves_while_a_cell_runs(kernel, tmp_path):
    kernel.run(SIMULATED)
    page = Page(kernel)
    page.offer()
    page.open()
    page.ask("show")
    may_end = tmp_path / "may_end"
    cell = begin_cell(kernel, tmp_path / "begun", may_end)
    page.ask("snapshot", path="one.gpuviz")
    saved = page.answer("snapshot")
    page.ask("snapshot", path="one.gpuviz")
    refused = page.answer("snapshot")
    page.ask("report", path="one.html", redact=True)
    reported = page.answer("report")
    page.ask("report", path="one.html")
    refused_report = page.answer("report")
    page.ask("stop")
    stopped = page.answer("stop")
    may_end.touch()
    kernel.wait(cell)

    failed = [each["failed"] for each in (saved, refused, reported, refused_report, stopped)]
    assert failed == [False, True, False, True, False]
    assert "redacted" in (tmp_path / "one.html").read_text().lower()
    assert (tmp_path / "one.gpuviz").is_file()
    assert "exists" in refused["text"]
    assert "exists" in refused_report["text"]


def test_a_page_sees_what_keeps_memory_alive_and_lets_go_of_it(kernel):
    kernel.run("import gpuviz\ngpu = gpuviz.SimulatedGPU()\nmodel = {'w': gpu.empty(3 << 20)}")
    kernel.run("gpu.empty(2 << 20)")
    page = Page(kernel)
    page.offer()
    page.open()

    page.ask("leaks")
    found = page.answer("leaks")
    offers = {title: (offer, size) for offer, title, size in found["held"]["releases"]}
    page.ask("release", offer=offers["Drop Out[2]"][0])
    let_go = page.answer("release")

    assert [row[0] for row in found["held"]["rows"]] == ["3.00 MiB", "2.00 MiB"]
    assert found["held"]["rows"][0][2] == "model['w']"
    assert found["held"]["more"] == 0
    assert offers["Drop Out[2]"][1] == "2.00 MiB"
    assert let_go["text"] == "Freed 2.00 MiB."
    assert [row[0] for row in let_go["held"]["rows"]] == ["3.00 MiB"]


def test_a_button_lets_go_of_nothing_but_what_it_was_made_for(kernel):
    kernel.run("import gpuviz\ngpu = gpuviz.SimulatedGPU()\nx = gpu.empty(8 << 20)")
    page = Page(kernel)
    page.offer()
    page.open()
    page.ask("leaks")
    ((offer, title, _), *_) = page.answer("leaks")["held"]["releases"]
    kernel.run("del x\nx = gpu.empty(512 << 20)")

    page.ask("release", offer=offer)
    changed = page.answer("release")
    page.ask("release", offer="no such offer")
    unknown = page.answer("release")

    assert title == "Delete x"
    assert "x is no longer what was listed" in changed["text"]
    assert [row[0] for row in changed["held"]["rows"]] == ["512 MiB"]
    assert "out of date" in unknown["text"]
    assert kernel.run("print(x.nbytes >> 20)").streams == "512\n"


def test_a_search_waits_for_the_end_of_the_cell(kernel, tmp_path):
    kernel.run("import gpuviz, time\ngpu = gpuviz.SimulatedGPU()\nx = gpu.empty(3 << 20)")
    page = Page(kernel)
    page.offer()
    page.open()
    may_end = tmp_path / "may_end"
    begin_cell(kernel, tmp_path / "begun", may_end, "y = gpu.empty(1 << 20)")

    page.ask("leaks")
    page.ask("nonsense")
    first = page.next()
    may_end.touch()

    assert first["id"] == "nonsense"
    assert [row[2] for row in page.answer("leaks")["held"]["rows"]] == ["x", "y"]
