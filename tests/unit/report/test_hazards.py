"""What a report says about unordered operations on the same memory."""

import re

import pytest

from gpuviz.report import hazards
from gpuviz.report.page import build_page
from tests.unit.hazards.test_hazards import Program


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

    section = page.partition('data-panel="hazards"')[2].partition("</section>")[0]
    activities = recording.table("activities")
    begin = activities["time"][hazard.first.activity].as_py()
    end = activities["end"][hazard.second.activity].as_py()

    assert hazard.showed
    assert "read without waiting for the write" in first_lines(page)[0]
    assert f'data-show="{begin}-{end}"' in section
    assert "fill writes it on " in section
    assert "use reads it on " in section
    assert "wait_event(first_stream.record())" in section


def test_ordered_operations_have_no_section():
    assert 'data-panel="hazards"' not in build_page(raced(waits=True))


def test_a_very_long_recording_is_left_to_the_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hazards, "_MOST_JUDGED", 1)

    assert hazards.hazard_notices(raced(waits=False), 0) == []
