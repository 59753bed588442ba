"""What a report says about unordered operations on the same memory."""

import re

import pytest

import gpuviz
from gpuviz.conclusions import hazards
from gpuviz.hazards import known
from gpuviz.report.page import build_page
from tests.unit.hazards.two_streams import Program


def raced(*, waits: bool):
    program = Program()
    array = program.empty(program.s)
    program.launch(program.s, "fill", writes=[array])
    if waits:
        program.t.wait_event(program.s.record())
    program.launch(program.t, "use", reads=[array])
    return program.recording()


def first_lines(page: str) -> list[str]:
    lines = re.findall(r'<li class="gpuviz-first__line[^"]*">(.*?)</li>', page, re.DOTALL)
    return [re.sub(r"<[^>]*>", "", line) for line in lines]


def test_a_hazard_that_showed_is_the_first_line_and_has_its_section():
    recording = raced(waits=False)
    (hazard,) = recording.hazards()
    page = build_page(recording)

    section = page.partition('id="hazards-0"')[2].partition("</section>")[0]
    activities = recording.table("activities")
    begin = activities["time"][hazard.first.activity].as_py()
    end = activities["end"][hazard.second.activity].as_py()

    assert hazard.showed
    assert "read without waiting for the write" in first_lines(page)[0]
    (row,) = (row for row in recording.table("shown").to_pylist() if row["list"] == "hazards")
    rows = (row["first_activity"], row["second_activity"])
    assert (row["begin"], row["end"]) == (begin, end)
    assert (row["tab"], row["number"]) == ("hazards", 1)
    assert rows == (hazard.first.activity, hazard.second.activity)
    assert "fill writes it on " in section
    assert "use reads it on " in section
    assert "wait_event(first_stream.record())" in section


def test_ordered_operations_have_no_section():
    assert 'id="hazards-0"' not in build_page(raced(waits=True))


def test_a_very_long_recording_is_left_to_the_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(known, "_MOST_JUDGED", 1)

    assert hazards.hazard_conclusions(raced(waits=False), 0) == []


def test_a_latent_hazard_has_no_arrow_since_it_has_one_operation():
    program = Program()
    array = program.empty(program.s)
    program.launch(program.t, "use", reads=[array])
    del array
    recording = program.recording()
    rows = [row for row in recording.table("shown").to_pylist() if row["list"] == "hazards"]

    assert 'id="hazards-0"' in build_page(recording)
    assert [row["first_activity"] for row in rows] == [-1]


def test_at_most_so_many_arrows_are_drawn(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hazards, "_MOST_ARROWS", 0)

    assert hazards.arrows(raced(waits=False), 0) == [None]


def asked(work, **options: bool) -> str:
    gpu = gpuviz.SimulatedGPU(real_time=False)
    recorder = gpuviz.record(device=gpu, **options)
    recorder.announces = False
    with recorder:
        work(gpu)
        gpu.synchronize()
    return build_page(recorder.recording)


def section(page: str, slug: str) -> str:
    """Return the text of a section; empty if there is none."""
    found = page.partition(f'id="{slug}-0"')[2].partition("</section>")[0]
    return " ".join(re.sub(r"<[^>]*>", " ", found.partition(">")[2]).split())


def launches(gpu) -> None:
    with gpu.Stream(non_blocking=True):
        array = gpu.empty(512)
        gpu.launch("fill", writes=[array], duration=1e-4)
    for _ in range(2):
        gpu.launch("<last>", duration=1e-4)


def test_a_report_says_that_none_were_found_if_they_were_asked_for():
    assert section(asked(launches, hazards=True), "hazards") == (
        "Hazards No unordered operations on the same memory were found."
    )
    assert section(asked(lambda _: None, hazards=True), "hazards") == (
        "Hazards No launch is recorded with the blocks that it touches."
    )
    assert section(asked(launches), "hazards") == ""


def test_a_report_lists_work_on_a_forbidden_default_stream():
    page = asked(launches, forbid_default_stream=True)

    assert section(page, "default-stream").startswith(
        "Default stream Line Work Calls Time on the GPU "
        "gpu.launch(&#34;&lt;last&gt;&#34;, duration=1e-4) launches (report/test_hazards.py:"
    )
    assert " kernel 2 200 \N{MICRO SIGN}s Launches, copies and memsets" in section(
        page, "default-stream"
    )
    assert section(asked(launches), "default-stream") == ""
    assert "Nothing ran on the legacy default stream." in section(
        asked(lambda _: None, forbid_default_stream=True), "default-stream"
    )
