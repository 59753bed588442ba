import re
import subprocess
import sys
import webbrowser
from pathlib import Path

import pytest

import gpuviz
from gpuviz.commands import demo
from gpuviz.commands.cli import commands
from gpuviz.commands.main import main
from gpuviz.commands.workloads import WORKLOADS
from gpuviz.recording import Recording
from tests.unit.recording.from_activities import Timeline
from tests.unit.report.recordings import make_recording


@pytest.fixture
def gpuviz_command(monkeypatch, capsys):
    """Run the command line with these arguments; return exit code, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gpuviz", *map(str, arguments)])
        with pytest.raises(SystemExit) as stopped:
            main()
        printed = capsys.readouterr()
        return stopped.value.code, printed.out, printed.err

    return run


@pytest.fixture
def saved(tmp_path):
    return make_recording().save(tmp_path / "saved.gpuviz")


def test_help_names_every_command(gpuviz_command):
    code, out, _ = gpuviz_command("--help")

    assert code == 0
    listed = re.findall(r"^│ ([a-z][a-z-]*) ", out, re.MULTILINE)
    assert sorted(listed) == sorted(commands.commands)
    groups = re.findall(r"^╭─ ([A-Za-z ]+) ─", out, re.MULTILINE)
    assert groups == ["Options", "Record and look", "Conclude", "Files and machine"]


def test_help_loads_no_heavy_library():
    heavy = ("cupy", "pyarrow", "plotly", "ipywidgets", "anywidget", "numpy")
    code = (
        "import sys; from gpuviz.commands.cli import commands; "
        "commands(['--help'], standalone_mode=False); "
        f"sys.stderr.write(str([name for name in {heavy} if name in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert done.stderr == "[]"


def test_info_prints_the_facts_of_a_recording(gpuviz_command, saved):
    code, out, err = gpuviz_command("info", saved)
    lines = [" ".join(line.split()) for line in out.splitlines()]

    assert (code, err) == (0, "")
    assert "7 memory events in 600 µs" in lines
    assert any("3 alloc" in line for line in lines)
    assert "allocated 12.0 MiB 6.00 MiB" in lines
    assert "reserved 20.0 MiB 20.0 MiB" in lines
    assert "program train.py --steps 5" in lines


def test_info_prints_no_activities_where_there_are_none(gpuviz_command, saved):
    _, out, _ = gpuviz_command("info", saved)

    assert [word for word in ("Kernels", "Copies", "busy") if word in out] == []


def test_info_prints_what_ran_on_the_gpu(gpuviz_command, tmp_path):
    timeline = Timeline()
    timeline.kernel(0, 600_000_000)
    timeline.kernel(900_000_000, 1_000_000_000)
    timeline.copy(500_000_000, 700_000_000, bytes=3 << 20, stream=2)
    timeline.call(0, 250_000_000, "cuStreamSynchronize", correlation=9)
    path = timeline.recording().save(tmp_path / "run.gpuviz")
    _, out, _ = gpuviz_command("info", path)
    lines = out.splitlines()

    assert "Kernels: 2" in lines
    assert "Copies: 1, 3.00 MiB" in lines
    assert "Synchronizations: 1, blocking the host for 250 ms" in lines
    assert "Device 0: GPU busy 80 % of 1.00 s; Copies hidden 50 %" in lines


def test_report_writes_a_page_that_holds_the_recording(gpuviz_command, saved, tmp_path):
    page = tmp_path / "page.html"
    code, out, _ = gpuviz_command("report", saved, "-o", page)

    assert (code, out) == (0, f"Wrote {page}\n")
    assert (
        gpuviz.load(page)
        .table("memory_events")
        .equals(
            gpuviz.load(saved).table("memory_events"),
        )
    )


def test_report_replaces_a_file_only_when_forced(gpuviz_command, saved, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("mine")

    code, _, err = gpuviz_command("report", saved, "-o", page)
    kept = page.read_text()
    forced, _, _ = gpuviz_command("report", saved, "-o", page, "--force")

    assert (code, kept, forced) == (1, "mine", 0)
    assert err == f"gpuviz: {page} exists; choose another name, or use --force to replace it.\n"
    assert "<html" in page.read_text()


def test_a_missing_folder_for_the_output_is_named(gpuviz_command, saved, tmp_path):
    code, _, err = gpuviz_command("report", saved, "-o", tmp_path / "none" / "page.html")

    assert code == 1
    assert err == f"gpuviz: The folder {tmp_path / 'none'} of page.html does not exist.\n"


@pytest.mark.parametrize("verb", [["info"], ["report", "-o", "page.html"]])
def test_a_missing_file_is_one_sentence(gpuviz_command, tmp_path, monkeypatch, verb):
    monkeypatch.chdir(tmp_path)
    code, _, err = gpuviz_command(*verb, "absent.gpuviz")

    assert (code, err) == (1, "gpuviz: absent.gpuviz: No such file or directory\n")


def test_a_foreign_file_is_one_sentence_that_names_it(gpuviz_command, tmp_path):
    foreign = tmp_path / "notes.gpuviz"
    foreign.write_text("not a recording")
    code, _, err = gpuviz_command("info", foreign)

    assert code == 1
    assert err.startswith(f"gpuviz: {foreign}: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize("verb", ["info", "report"])
def test_a_program_in_place_of_a_recording_is_answered_with_how_to_record_it(
    gpuviz_command, tmp_path, monkeypatch, verb
):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("print(1)")
    Path("train.html").write_text("mine")
    answer = "train.py: a Python program; this records it: gpuviz run train.py"

    assert gpuviz_command(verb, "train.py") == (1, "", f"gpuviz: {answer}\n")


@pytest.mark.parametrize(
    ("name", "meant"),
    [("train.py", "gpuviz run train.py"), ("saved.gpuviz", "gpuviz view saved.gpuviz")],
)
def test_a_file_in_place_of_a_command_is_answered_with_a_command(
    gpuviz_command, saved, monkeypatch, name, meant
):
    monkeypatch.chdir(saved.parent)
    Path("train.py").write_text("print(1)")
    code, _, err = gpuviz_command(name)

    assert code == 2
    assert f"No such command '{name}'. Did you mean '{meant}'?" in err


def test_a_wrong_option_is_a_usage_error(gpuviz_command):
    code, _, err = gpuviz_command("info", "--nonsense")

    assert code == 2
    assert "--nonsense" in err


def test_an_unknown_workload_is_answered_with_the_known_ones(gpuviz_command):
    code, _, err = gpuviz_command("demo", "--workload", "kmean")

    assert code == 1
    assert "'kmean'" in err
    assert [name for name in WORKLOADS if name not in err] == []


def test_the_workloads_are_listed_with_their_sentences(gpuviz_command):
    code, out, _ = gpuviz_command("demo", "--list")

    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == list(WORKLOADS)


@pytest.fixture
def without_gpu(monkeypatch, tmp_path):
    """A machine without a GPU, and a small recording in place of the shipped one."""
    monkeypatch.setattr(demo, "_has_gpu", lambda: False)
    monkeypatch.setattr(demo, "RECORDINGS", tmp_path)
    make_recording().save(tmp_path / "kmeans.gpuviz")


@pytest.mark.usefixtures("without_gpu")
def test_a_demo_without_a_gpu_says_that_it_is_a_replay(gpuviz_command, tmp_path):
    page = tmp_path / "run.html"
    code, out, _ = gpuviz_command("demo", "--output", page)
    manifest = gpuviz.load(page).manifest

    assert code == 0
    assert out.endswith(f"Wrote {page}\n")
    assert manifest.simulated
    assert manifest.label.startswith("Replayed on the simulated device from a recording made on")


@pytest.mark.usefixtures("without_gpu")
def test_a_demo_without_a_gpu_shows_the_activities_that_were_recorded(gpuviz_command, tmp_path):
    timeline = Timeline()
    timeline.kernel(1000, 5000, "step", correlation=1)
    timeline.call(0, 900, correlation=1, line=12)
    made = timeline.recording(duration_ns=6000)
    devices = make_recording().table("devices")
    recording = Recording(dict(made.tables) | {"devices": devices}, made.manifest)
    recording.save(tmp_path / "kmeans.gpuviz", overwrite=True)

    gpuviz_command("demo", "--output", tmp_path / "run.html")
    shown = gpuviz.load(tmp_path / "run.html")

    assert shown.kernels("line").to_pylist() == recording.kernels("line").to_pylist()
    assert shown.overlap().devices[0].kernel_ns == 4000
    assert shown.table("api_calls") == recording.table("api_calls")


@pytest.mark.usefixtures("without_gpu")
def test_a_demo_opens_the_browser_unless_told_where_to_write(gpuviz_command, monkeypatch, tmp_path):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda url: not opened.append(url))

    gpuviz_command("demo", "--no-open")
    gpuviz_command("demo", "--output", tmp_path / "run.html")
    _, out, _ = gpuviz_command("demo")

    assert len(opened) == 1
    assert opened[0] == Path(out.splitlines()[-1].removeprefix("Wrote ")).as_uri()


def test_a_tour_without_jupyterlab_says_how_to_install_it(gpuviz_command, monkeypatch, tmp_path):
    monkeypatch.setattr(demo, "find_spec", lambda _name: None)
    _, out, _ = gpuviz_command("demo", "--tour", "--output", tmp_path / "tour.ipynb")

    assert out.endswith(" opens it, after `pip install jupyterlab`.\n")


def test_info_of_a_redacted_simulated_gpu_has_its_memory(gpuviz_command, tmp_path):
    gpu = gpuviz.SimulatedGPU(memory=2 << 30, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        gpu.empty(1234)
    redacted = recorder.recording.report(tmp_path / "redacted.html", redact=True)
    _, out, _ = gpuviz_command("info", redacted)

    assert "Device 0: 2.00 GiB\n" in re.sub(" +\n", "\n", out)


def test_a_demo_writes_the_tour(gpuviz_command, tmp_path):
    path = tmp_path / "tour.ipynb"
    code, out, _ = gpuviz_command("demo", "--tour", "--output", path)
    again, _, error = gpuviz_command("demo", "--tour", "--output", path)

    assert (code, out) == (0, f"Wrote {path}; `jupyter lab {path}` opens it.\n")
    assert path.read_bytes() == demo.TOUR.read_bytes()
    assert again == 1
    assert f"{path} exists" in error


@pytest.mark.usefixtures("without_gpu")
def test_a_demo_that_finds_no_browser_says_what_to_do(gpuviz_command, monkeypatch):
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    code, out, _ = gpuviz_command("demo")

    assert code == 0
    assert out.splitlines()[-1] == "No browser could be started: open the file in one."
