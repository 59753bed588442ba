"""The dashboard's buttons, numbers, findings and static output."""

import re
import threading
from types import SimpleNamespace

import pytest

import gpuviz
from gpuviz.conclusions.recording_numbers import figures
from gpuviz.notebook.panel import Panel
from gpuviz.quantities import format_duration
from gpuviz.recorder.recorder import Recorder
from tests.patience import PATIENCE_S, wait_until
from tests.unit.notebook.shell.dashboards import RECORDINGS, wait_for

MIB = 1 << 20


def numbers(dashboard):
    texts = re.findall(r'<span class="[^"]*">(.*?)</span>', dashboard.numbers)
    found = zip(texts[::3], texts[1::3], texts[2::3], strict=True)
    return {name: (value, detail) for name, value, detail in found}


def press(dashboard, name):
    page_says(dashboard, press=name)
    return dashboard.message


def page_says(dashboard, **content):
    """Handle a message as if a page had sent it."""
    data = {"method": "custom", "content": content}
    dashboard.comm.handle_msg({"content": {"data": data}, "buffers": []})


def enabled(dashboard):
    """Return the buttons that act on a recording and can be pressed."""
    return {name for name, _, disabled in dashboard.buttons if not disabled and name != "Leaks"}


def test_before_anything_is_recorded_there_is_only_start(dashboard):
    assert "Nothing has been recorded yet" in dashboard.numbers
    assert enabled(dashboard) == {"Start"}


def test_it_follows_the_recorder_that_the_magic_starts(shell, dashboard):
    shell.run("%gpuviz start --simulated gpu")
    shell.run(f"x = gpu.empty({3 * MIB}); y = gpu.empty({5 * MIB}); del y")
    dashboard.refresh()

    assert dashboard._statistics_of is Recorder.active()
    assert enabled(dashboard) == {"Stop", "Clear", "Snapshot", "Report"}
    assert numbers(dashboard)["Allocated"] == ("3.00 MiB", "peak 8.00 MiB")
    assert numbers(dashboard)["Dropped events"] == ("0", "")


def test_what_can_be_allocated_now_is_what_is_unused_and_can_be_released(shell, dashboard):
    shell.run("gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)")
    shell.run("%gpuviz start --simulated gpu")
    shell.run(f"x = gpu.empty({300 * MIB}); y = gpu.empty({200 * MIB}); del y")
    shell.run("%gpuviz stop")
    dashboard.refresh()

    value, detail = numbers(dashboard)["Can be allocated now"]
    assert (value, detail) == ("724 MiB", "524 MiB unused, 200 MiB can be released")
    shell.run(f"z = gpu.empty({724 * MIB})")
    assert shell.names["z"].nbytes == 724 * MIB


def test_the_buttons_stop_clear_and_start_again(shell, dashboard):
    shell.run("%gpuviz start --simulated gpu")
    shell.run("x = gpu.empty(1234)")
    press(dashboard, "Stop")
    stopped = Recorder.active(), enabled(dashboard)
    press(dashboard, "Clear")
    cleared = dashboard.recorder
    press(dashboard, "Start")

    assert stopped == (None, {"Start", "Clear", "Snapshot", "Report"})
    assert cleared is None
    assert dashboard.recorder is Recorder.active()
    assert numbers(dashboard)["Allocated"][0] == "1.50 KiB"


def test_the_last_numbers_are_shown_of_a_recorder_that_ends_slowly(shell, dashboard, monkeypatch):
    shell.run("%gpuviz start --simulated gpu")
    shell.run(f"x = gpu.empty({3 * MIB})")
    dashboard.refresh()
    shell.run(f"y = gpu.empty({5 * MIB})")
    recorder, may_end = Recorder.active(), threading.Event()
    finish = recorder._finish
    monkeypatch.setattr(recorder, "_finish", lambda *of: (may_end.wait(PATIENCE_S), finish(*of)))
    ending = threading.Thread(target=recorder.stop)
    ending.start()
    wait_until(lambda: "Stop" not in enabled(dashboard))
    meanwhile = numbers(dashboard)["Allocated"]
    may_end.set()
    ending.join()

    wait_until(lambda: numbers(dashboard)["Allocated"] == ("8.00 MiB", "peak 8.00 MiB"))
    assert meanwhile == ("3.00 MiB", "peak 3.00 MiB")


def test_snapshot_and_report_write_files_and_say_which(shell, dashboard, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shell.run("%gpuviz start --simulated gpu")
    shell.run("x = gpu.empty(1234)")
    said = [press(dashboard, "Snapshot")]
    [saved] = tmp_path.glob("*.gpuviz")

    said.append(press(dashboard, "Report"))
    [report] = tmp_path.glob("*.html")

    assert said == [f"Wrote {saved.name}", f"Wrote {report.name}"]
    assert gpuviz.load(saved).peak().bytes == 1536
    assert gpuviz.load(report).peak().bytes == 1536


def test_an_error_is_told_in_the_dashboard(shell, dashboard):
    shell.run("recorder = gpuviz.record(device=gpu); recorder.start()")
    dashboard.refresh()

    assert "The program itself started this recording" in press(dashboard, "Clear")


def test_a_dashboard_of_one_recorder_shows_that_one(shell):
    recorder = gpuviz.record(device=shell.names["gpu"])
    with recorder:
        dashboard = gpuviz.dashboard(recorder)
        recording = enabled(dashboard)
    dashboard.refresh()

    assert dashboard._statistics_of is recorder
    assert (recording, enabled(dashboard)) == (
        {"Stop", "Snapshot", "Report"},
        {"Snapshot", "Report"},
    )
    dashboard.close()


def test_a_recording_is_shown_with_its_numbers_and_can_only_be_saved(shell):
    recorder = gpuviz.record(device=shell.names["gpu"])
    with recorder:
        array = shell.names["gpu"].empty(3 * MIB)
    dashboard = gpuviz.dashboard(recorder.recording)
    shown = shell.run("%gpuviz start --simulated gpu")
    dashboard.refresh()

    assert dashboard._statistics_of.recording is recorder.recording
    assert enabled(dashboard) == {"Snapshot", "Report"}
    assert numbers(dashboard)["Allocated"] == ("3.00 MiB", "peak 3.00 MiB")
    assert numbers(dashboard)["GPU busy"][0] == "unknown"
    assert shown.stderr == ""
    assert array.nbytes == 3 * MIB
    dashboard.close()


def test_a_finished_recording_has_the_times_of_its_report():
    recording = gpuviz.load(RECORDINGS / "kmeans.gpuviz")
    dashboard = gpuviz.dashboard(recording)
    wait_until(lambda: dashboard.sections)
    dashboard.refresh()
    shown = numbers(dashboard)
    dashboard.close()
    of_report = {each.name: (each.value, each.detail) for each in figures(recording, 0)}
    times = ("GPU busy", "GPU idle", "Copies hidden", "Host blocked")

    assert [shown[name] for name in times] == [of_report[name] for name in times]


def test_what_is_neither_recorder_nor_recording_is_named():
    sentence = "expected a Recorder or a Recording, got 'run.gpuviz'; gpuviz.load(path) makes"
    with pytest.raises(TypeError, match=re.escape(sentence)):
        gpuviz.dashboard("run.gpuviz")


def test_closing_leaves_no_thread_and_no_callback(shell):
    before = list(shell.shell.events.callbacks["post_run_cell"])
    shell.run("board = gpuviz.dashboard()\nboard")
    threads = [each.name for each in threading.enumerate()]
    shell.names["board"].close()

    assert "gpuviz-dashboard" in threads
    assert "gpuviz-dashboard" not in [each.name for each in threading.enumerate()]
    assert shell.shell.events.callbacks["post_run_cell"] == before


def test_a_cell_that_runs_again_closes_what_it_had_shown(shell, monkeypatch):
    parent = {"metadata": {"cellId": "one"}}
    kernel = SimpleNamespace(get_parent=lambda: parent)
    monkeypatch.setattr(shell.shell, "kernel", kernel, raising=False)
    shell.run("first = gpuviz.dashboard()\nfirst")
    shell.run("second = gpuviz.dashboard()\nsecond")
    parent["metadata"]["cellId"] = "other"
    shell.run("third = gpuviz.dashboard()\nthird")
    alive = [shell.names[name]._refresher.is_running for name in ("first", "second", "third")]
    shell.run("%unload_ext gpuviz")

    assert alive == [False, True, True]
    assert "gpuviz-dashboard" not in [each.name for each in threading.enumerate()]


def test_a_closed_dashboard_says_so_and_how_to_get_another(shell, dashboard):
    dashboard.close()
    shown = shell.run("board._ipython_display_()\nprint(board)")

    assert shown.stdout == (
        "This dashboard is closed; `gpuviz.dashboard()` makes a new one.\n<Dashboard, closed>\n"
    )
    assert shown.shown == []


def test_a_dashboard_that_is_shown_again_stays_open_and_has_its_static_output_everywhere(
    shell, monkeypatch
):
    parent = {"metadata": {"cellId": "one"}}
    kernel = SimpleNamespace(get_parent=lambda: parent)
    monkeypatch.setattr(shell.shell, "kernel", kernel, raising=False)
    shell.run("board = gpuviz.dashboard()\nboard._ipython_display_()")
    parent["metadata"]["cellId"] = "other"
    bundles = [shell.run("board._ipython_display_()").shown for _ in range(3)]
    shell.run("gpuviz.dashboard()._ipython_display_()")
    alive = shell.names["board"]._refresher.is_running
    shell.run("%unload_ext gpuviz")

    assert [[bundle["text/plain"] for bundle in each[:2]] for each in bundles] == 3 * [
        [
            "gpuviz dashboard: live in a notebook; otherwise see below.",
            "gpuviz: nothing has been recorded yet.",
        ]
    ]
    assert alive


def test_the_static_output_is_text_and_html_and_refreshed_when_a_cell_ends(shell, dashboard):
    first = shell.run("%gpuviz start --simulated gpu\nboard._ipython_display_()")
    shown = shell.run("x = gpu.empty(1 << 20)").shown

    live, static_output, _ = first.shown
    assert "live in a notebook" in live["text/plain"]
    assert static_output["text/plain"].startswith("gpuviz: ")
    [refreshed] = shown
    assert "1.00 MiB held by x" in refreshed["text/plain"]
    assert "its end is missing" not in refreshed["text/plain"]
    assert len(refreshed["text/html"].encode()) <= 100_000
    assert dashboard._static_output.live_class in refreshed["text/html"]
    assert dashboard._static_output.live_class in dashboard._dom_classes


def test_a_terminal_is_not_told_again_after_each_cell(shell, dashboard, capsys):
    shell.run("%gpuviz start --simulated gpu")
    dashboard._ipython_display_()
    told = capsys.readouterr().out
    shell.shell.run_cell("x = gpu.empty(1 << 20)")

    assert told.count("gpuviz: ") == 1
    assert capsys.readouterr().out == ""


def test_the_numbers_of_the_dashboard_are_those_of_the_status_at_the_same_time(shell, dashboard):
    shell.run("%gpuviz start --simulated gpu")
    shell.run(f"x = gpu.empty({3 * MIB}); y = gpu.empty({5 * MIB}); del y")
    page_says(dashboard, kind="show", viewer="page", since=-1)
    wait_for(lambda: dashboard._followed is Recorder.active())
    text = shell.run("%gpuviz status").stdout
    statistics = Recorder.active().statistics
    wait_for(lambda: dashboard._numbers_of is statistics)
    shown = numbers(dashboard)
    told = panel_state(shell)

    assert shown["Allocated"] == ("3.00 MiB", "peak 8.00 MiB")
    for name, (value, detail) in shown.items():
        assert re.search(rf"{name} +{re.escape(value)}( \({re.escape(detail)}\))?\n", text)
    assert text.startswith(f"Recording for {format_duration(statistics.time_ns)}\n")
    assert {
        name: (value, detail) for name, value, detail in told["numbers"]
    }.items() <= shown.items()
    assert told["elapsedNs"] == statistics.time_ns


def panel_state(shell):
    return Panel(shell.shell._gpuviz_magics.control).state()


def test_the_dashboard_shows_what_keeps_memory_alive_and_lets_go_of_it(shell, dashboard):
    shell.names["gpu"] = gpu = gpuviz.SimulatedGPU(real_time=False)
    shell.names["weights"] = gpu.empty(64 * MIB)
    assert dashboard.held == ""

    press(dashboard, "Leaks")

    assert '<td style="text-align:left">weights</td>' in dashboard.held
    shell.names["weights"] = gpu.empty(256 * MIB)
    page_says(dashboard, release=0)
    assert "weights is no longer what was listed" in dashboard.held
    shell.names["weights"] = gpu.empty(64 * MIB)
    press(dashboard, "Leaks")
    labels = [label for label, _ in dashboard.releases]
    number = labels.index("Delete weights: 64.0 MiB")
    offered = dashboard._kept_alive._offered[number]
    page_says(dashboard, release=number)
    assert "weights" not in shell.names
    assert gpu.memory_stats()["allocated_bytes.all.current"] == 0
    assert "Freed 64.0 MiB." in dashboard.held
    dashboard._kept_alive._offered = (offered,)
    dashboard._kept_alive.let_go(0)
    assert "would free no memory" in dashboard.held
    thread = threading.Thread(target=dashboard._kept_alive.search)
    thread.start()
    thread.join()
    assert dashboard.held == "Available when the cell has ended."


def test_what_no_button_offers_is_refused(dashboard, monkeypatch):
    sent = []
    monkeypatch.setattr(dashboard, "send", lambda content, **_: sent.append(content["kind"]))

    for asked in ({"press": "Explode"}, {"press": 7}, {"release": 3}, {"release": "x"}):
        page_says(dashboard, **asked)

    assert sent == 4 * ["refused"]
