"""Page, workbench, command line, magic and dashboard show the same list of conclusions."""

import re
from contextlib import suppress
from html import unescape
from pathlib import Path
from random import Random

import pytest

import gpuviz
from gpuviz.commands.findings import run
from gpuviz.conclusions.item import AT_ONCE
from gpuviz.conclusions.ranking import conclusions
from gpuviz.notebook.control import shared_control
from gpuviz.notebook.findings import Findings
from gpuviz.report.page import build_page
from tests.unit.ipython_shells import new_shell

ROOT = Path(__file__).parents[3]
SHIPPED = sorted(
    path
    for folder in ("gpuviz/commands/recordings", "tests/unit", "docs", "notebooks")
    for pattern in ("*.gpuviz", "data/*.pickle")
    for path in (ROOT / folder).rglob(pattern)
)
MIB = 1 << 20


def titles_of_page(recording):
    """Return the titles in the panel of each device, in its order."""
    found = []
    for section in re.findall(
        r'id="findings-\d+">(.*?)</section>', build_page(recording), re.DOTALL
    ):
        found += titles(r'gpuviz-finding--\w+"><strong>(.*?)</strong>', section)
    return found


def titles_of_workbench(recording):
    rows = recording.table("shown").to_pylist()
    return [row["title"] for row in rows if row["list"] == "findings"]


def titles(pattern, html):
    found = re.findall(pattern, html, re.DOTALL)
    return [unescape(re.sub(r"</?code[^>]*>", "`", each)) for each in found]


def titles_of_text(text):
    found = re.findall(r"^\d+\. (.*)$", text, re.MULTILINE)
    return [re.sub(r" \[R\d+, \w+\]$", "", each) for each in found]


def titles_of_dashboard(recording):
    shown = []
    Findings(lambda: recording, shown.append, lambda _: None).refresh_if_due()
    return titles(r'__saving">[^<]*</span>(.*?)</summary>', shown[-1])


def printed_by_command(path, capsys):
    run(path, as_json=False, everything=False)
    return capsys.readouterr().out


def printed_by_magic(recording, monkeypatch, capsys):
    monkeypatch.setattr(type(shared_control()), "recording", recording)
    with new_shell() as shell:
        gpuviz.load_ipython_extension(shell)
        shell.run_line_magic("gpuviz", "findings")
        gpuviz.unload_ipython_extension(shell)
    return capsys.readouterr().out


def check(path, monkeypatch, capsys):
    """Compare what the four show of a recording; return how many conclusions it has."""
    recording = gpuviz.load(path)
    said = conclusions(recording)
    expected = [each.title for each in said]
    # A rank that comes last (R48) is shown with each device, since all wait for it.
    of_devices = [
        each.title
        for device in recording.devices
        for each in said
        if each.device == device or each.rule == "R48"
    ]
    printed = printed_by_command(path, capsys)

    assert titles_of_page(recording) == of_devices
    assert titles_of_workbench(recording) == of_devices
    assert set(of_devices) == set(expected)
    assert titles_of_text(printed) == expected[:AT_ONCE]
    assert printed_by_magic(recording, monkeypatch, capsys) == printed
    assert titles_of_dashboard(recording) == expected
    return len(expected)


def random_program(gpu, random):
    """Allocate, free, launch, copy and wait at random."""
    streams, live = [gpu.null_stream, gpu.Stream(), gpu.Stream(non_blocking=True)], []
    for _ in range(random.randrange(20, 200)):
        drawn = random.random()
        with random.choice(streams):
            if drawn < 0.25 or not live:
                with suppress(MemoryError):
                    live.append(gpu.empty(random.randrange(1, 40 * MIB)))
            elif drawn < 0.7:
                duration = random.choice([2e-6, 1e-4, 2e-3])
                gpu.launch("work", duration=duration, reads=live[:2], writes=live[-1:])
            elif drawn < 0.75:
                gpu.copy_to_host(random.choice(live), pinned=random.random() < 0.5)
            elif drawn < 0.8:
                gpu.copy_to_device(random.choice(live), pinned=random.random() < 0.5)
            elif drawn < 0.85:
                gpu.work_on_host(random.choice([1e-5, 1e-3]))
            elif drawn < 0.9:
                gpu.synchronize()
            else:
                live.pop(random.randrange(len(live)))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_the_conclusions_of_a_shipped_recording_are_the_same_everywhere(path, monkeypatch, capsys):
    assert check(path, monkeypatch, capsys) > 0


@pytest.mark.parametrize("seed", range(20))
def test_the_conclusions_of_a_random_program_are_the_same_everywhere(
    seed, tmp_path, monkeypatch, capsys
):
    random = Random(seed)
    gpu = gpuviz.SimulatedGPU(memory=random.choice([200, 4000]) * MIB, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        random_program(gpu, random)
    path = recorder.recording.save(tmp_path / "run.gpuviz")

    assert check(path, monkeypatch, capsys) > 0
