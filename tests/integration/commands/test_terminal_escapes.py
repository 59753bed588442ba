"""What files, programs and paths contain is shown on a terminal, and does not control it."""

import json
import re
import shutil
import sys

import pytest

import gpuviz
from gpuviz.commands.cli import commands
from gpuviz.commands.live_view import rendered
from gpuviz.commands.main import main
from gpuviz.conclusions.headline_number import Number
from gpuviz.doctor.finding import Finding
from gpuviz.errors import FormatError

# Sets the title, clears the screen, colours with a C1 character, reverses text, overwrites a line.
HOSTILE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202edlrow\rname\x7f"
SHOWN = r"\x1b]0;owned\x07\x1b[2J\x9b31m\u202edlrow\rname\x7f"
CLEARING = r"\x1b[2J\x9b31m\u202edlrow"
CONTROLLING = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
PROGRAM = f"""
first, second = gpu.Stream(), gpu.Stream()
array = gpu.empty(64 << 20)
for number in range(40):
    kept.append(gpu.empty(4 << 20))
    with first:
        gpu.launch({HOSTILE!r}, writes=[array], duration=1e-3)
    with second:
        gpu.launch({HOSTILE!r}, reads=[array], duration=1e-3)
    gpu.synchronize()
"""
# The output of the others names neither the file nor what is in it.
NAMING = set(commands.commands) - {"stats"}


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A folder with recordings whose every text is hostile, their own names too."""
    folder = tmp_path_factory.mktemp("hostile")
    for name in ("one", "two"):
        gpu = gpuviz.SimulatedGPU(real_time=False)
        recorder = gpuviz.record(device=gpu, hazards=True)
        recorder.announces = False
        with recorder:
            code = compile(PROGRAM, f"{HOSTILE}{name}.py", "exec")
            exec(code, {"gpu": gpu, "kept": []})  # noqa: S102 - our own
        recorder.recording.save(folder / f"{HOSTILE}{name}.gpuviz")
    return folder


@pytest.fixture
def hostile(recorded, tmp_path):
    return shutil.copytree(recorded, tmp_path / "copy")


@pytest.fixture
def gpuviz_command(monkeypatch, capsys, hostile):
    """Run the command line; return all that it printed."""
    monkeypatch.chdir(hostile)

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["gpuviz", *arguments])
        with pytest.raises(SystemExit):
            main()
        printed = capsys.readouterr()
        return printed.out + printed.err

    return run


ONE, TWO = f"{HOSTILE}one.gpuviz", f"{HOSTILE}two.gpuviz"
COMMANDS = {
    "convert": [ONE, f"{HOSTILE}.json"],
    "demo": ["--workload", HOSTILE],
    "diff": [ONE, TWO, "--fail-on", "peak:0"],
    "doctor": [HOSTILE],
    "findings": ["--all", ONE],
    "hazards": [ONE],
    "info": [ONE],
    "leaks": [ONE],
    "merge": [ONE, TWO, "-o", f"{HOSTILE}.gpuviz"],
    "peak": [ONE],
    "prove": [f"--{HOSTILE}"],
    "report": [ONE, "-o", f"{HOSTILE}.html"],
    "run": [f"--{HOSTILE}"],
    "stats": [ONE],
    "view": [f"{HOSTILE}missing.gpuviz"],
    "viewer": ["-o", f"{HOSTILE}.htm"],
    "what-if": [ONE, "cupy", "-o", f"{HOSTILE}.gpuviz"],
}


@pytest.mark.parametrize("verb", sorted(commands.commands))
def test_a_command_prints_names_and_paths_with_escapes(verb, gpuviz_command):
    printed = gpuviz_command(verb, *COMMANDS[verb])

    assert CONTROLLING.findall(printed) == []
    assert (CLEARING in printed) == (verb in NAMING)


@pytest.mark.parametrize("verb", ["findings", "hazards", "info", "leaks", "peak", "what-if"])
def test_json_has_the_names_themselves(verb, gpuviz_command):
    printed = gpuviz_command(verb, "--json", ONE)

    assert CONTROLLING.findall(printed) == []
    facts = json.loads(printed)
    if verb == "info":
        assert facts["file"] == ONE


def test_errors_about_files_have_their_paths_with_escapes(gpuviz_command, hostile):
    (hostile / ONE).write_bytes(b"PK\3\4" + bytes(100))

    for verb in ("info", "view", "stats"):
        printed = gpuviz_command(verb, ONE)

        assert printed.startswith(f"gpuviz: {SHOWN}one.gpuviz: ")
        assert CONTROLLING.findall(printed) == []


def test_errors_that_python_prints_have_escapes(hostile):
    (hostile / ONE).write_bytes(b"PK\3\4" + bytes(100))

    with pytest.raises(FormatError) as caught:
        gpuviz.load(hostile / ONE)

    assert SHOWN in str(caught.value)
    assert CONTROLLING.findall(str(caught.value)) == []
    assert caught.value.path == str(hostile / ONE)


def test_a_name_in_the_live_view_is_shown_with_escapes():
    lines = rendered([Number("GPU busy", HOSTILE, "")], 200)
    plain = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(lines))

    assert CONTROLLING.findall(plain) == []
    assert r"GPU busy \x1b]0;owned" in plain


def test_the_doctor_shows_what_the_machine_says_with_escapes(monkeypatch, gpuviz_command):
    found = [Finding(HOSTILE, "warning", HOSTILE, HOSTILE, HOSTILE)]
    monkeypatch.setattr("gpuviz.commands.doctor.examine", lambda *_, **__: found)

    printed = gpuviz_command("doctor")

    assert CONTROLLING.findall(printed) == []
    assert r"\x1b]0;owned\x07" in printed
