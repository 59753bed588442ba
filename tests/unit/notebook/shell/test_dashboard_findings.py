"""Findings, sections and notes that the dashboard shows."""

import re
from types import SimpleNamespace

import gpuviz
from gpuviz.notebook.control import shared_control
from gpuviz.notebook.drawer_sections import drawer_sections
from gpuviz.notebook.findings import NONE_YET, Findings
from gpuviz.report.sections import sections
from tests.patience import wait_until
from tests.unit.notebook.shell.dashboards import RECORDINGS

KEEPS = """
image = gpu.empty(32 << 20)
gpu.launch("make", duration=1e-4, writes=[image])
flat = gpu.empty(16 << 20)
gpu.launch("flatten", duration=1e-4, reads=[image], writes=[flat])
large = gpu.empty(64 << 20)
gpu.launch("enlarge", duration=1e-4, reads=[flat], writes=[large])
del image, flat, large
gpu.synchronize()
"""


def test_findings_follow_each_cell(shell, dashboard):
    due = dashboard._findings
    shell.run("%gpuviz start --simulated gpu\nboard")
    shell.run("x = 1")
    wait_until(lambda: not due._is_due)
    assert dashboard.findings == NONE_YET
    shell.run("x = gpu.empty(1 << 20)\ndel x")
    wait_until(lambda: "Nothing was found" in dashboard.findings)
    shell.run(KEEPS)
    wait_until(lambda: "is still allocated at the peak" in dashboard.findings)
    first = re.search(r'__saving">([^<]*)</span>(.*?)</summary>', dashboard.findings)

    assert first[1] == "32.0 MiB"
    assert first[2] == (
        '32.0 MiB from <code class="gpuviz-code">image = gpu.empty(32 &lt;&lt; 20)</code> is still '
        "allocated at the peak, where nothing uses it any more."
    )
    assert "Delete it" in dashboard.findings


def test_a_dashboard_of_a_recorder_shows_findings_once_it_has_started(shell):
    shell.run("gpu = gpuviz.SimulatedGPU(real_time=False)\nrecorder = gpuviz.record(device=gpu)")
    dashboard = gpuviz.dashboard(shell.names["recorder"])
    wait_until(lambda: not dashboard._findings._is_due)
    before = dashboard.findings
    shell.run("recorder.start()")
    shell.run(KEEPS)
    shell.run("recorder.stop()")
    wait_until(lambda: "is still allocated at the peak" in dashboard.findings)
    dashboard.close()

    assert before == NONE_YET


def test_findings_of_a_finished_recording_are_shown(shell):
    shell.run("%gpuviz start --simulated gpu")
    shell.run(KEEPS)
    shell.run("%gpuviz stop")
    dashboard = gpuviz.dashboard(shared_control().recording)
    wait_until(lambda: "is still allocated at the peak" in dashboard.findings)
    dashboard.close()


def test_the_drawer_of_a_finished_recording_has_the_sections_of_its_report():
    shown, explained = [], []
    recording = gpuviz.load(RECORDINGS / "image_pipeline.gpuviz")
    found = Findings(lambda: recording, shown.append, explained.append)

    found.refresh_if_due()
    found.request()
    found.refresh_if_due()

    assert explained == [None, recording]
    rows = drawer_sections(recording)
    texts = {name: (device, title, html) for device, name, title, html in rows}
    assert {name: text[:2] for name, text in texts.items()} == {
        section.name: (device, section.tab)
        for device, of_device in sections(recording)
        for section in of_device
        if section.title
    }
    assert texts["findings"][2].count("</summary>") == 8
    assert 'data-window="' in texts["findings"][2]
    assert "expandable_segments:True reserves 208 MiB instead of" in texts["what-if"][2]
    assert "24 iterations" in texts["iterations"][2]
    assert "24 iterations" not in shown[0]


def test_a_dashboard_has_sections_only_of_recordings_that_have_ended(shell):
    shell.run("%gpuviz start --simulated gpu")
    shell.run(KEEPS)
    dashboard = gpuviz.dashboard()
    wait_until(lambda: "is still allocated at the peak" in dashboard.findings)
    before = list(dashboard.sections)
    shell.run("%gpuviz stop")
    wait_until(lambda: dashboard.sections)
    names = {name for _, name, _, _ in dashboard.sections}
    shell.run("%gpuviz start --simulated gpu")
    wait_until(lambda: not dashboard.sections)
    dashboard.close()

    assert before == []
    assert {"findings", "what-if", "summary", "environment"} <= names


def test_a_very_long_recording_has_its_notes_above_the_charts_instead(monkeypatch):
    shown, explained = [], []
    monkeypatch.setattr("gpuviz.notebook.drawer_sections.MOST_ROWS", 1000)
    recording = gpuviz.load(RECORDINGS / "image_pipeline.gpuviz")
    found = Findings(lambda: recording, shown.append, explained.append)

    found.refresh_if_due()

    assert "<div>24 iterations: the same lines launch work again and again. The median" in shown[0]
    assert explained == [None]


def test_slow_findings_wait_unless_the_recording_has_ended(monkeypatch):
    computed = []
    recording = SimpleNamespace(
        tables={"memory_events": [1], "activities": []},
        duration_ns=1,
        manifest=SimpleNamespace(complete=False),
        iterations=lambda: SimpleNamespace(num_rows=0),
    )
    shown = Findings(lambda: recording, lambda _: None, lambda _: None)
    monkeypatch.setattr("gpuviz.notebook.findings.conclusions", lambda _: computed.append(1) or ())
    monkeypatch.setattr("gpuviz.notebook.findings.unknown", lambda _: ())
    monkeypatch.setattr("gpuviz.notebook.findings.SHORT_S", -1.0)
    monkeypatch.setattr("gpuviz.notebook.findings.MOST_OF_TIME", 1e-9)
    for _ in range(4):
        shown.request()
        shown.refresh_if_due()
    before = len(computed)
    shown.request(at_once=True)
    shown.refresh_if_due()

    assert (before, len(computed)) == (2, 3)
