"""The rows that a page lights up for a conclusion are those that it rests on."""

from pathlib import Path

import pytest

import gpuviz

ROOT = Path(__file__).parents[3]
RECORDINGS = sorted(
    path
    for folder in ("gpuviz/commands", "tests/unit/two_gpus/data")
    for path in (ROOT / folder).rglob("*.gpuviz")
)


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_shown_evidence_is_that_of_the_conclusion(path):
    recording = gpuviz.load(path)
    devices = recording.table("memory_events")["device"].to_pylist()
    ended_by = recording.table("idle_gaps")["activity"].to_pylist()
    said = {row["title"]: row for row in recording.table("conclusions").to_pylist()}

    for shown in recording.table("shown").to_pylist():
        of_device = [row for row, device in enumerate(devices) if device == shown["device"]]
        rows = shown["evidence"]
        if shown["evidence_of"] == "memory_events":
            rows = [of_device[event] for event in rows]
        if shown["list"] == "findings":
            (evidence,) = said[shown["title"]]["evidence"] or [{"table": "", "rows": []}]
            expected = evidence["rows"]
            if evidence["table"] == "idle_gaps":
                expected = [ended_by[row] for row in expected if ended_by[row] >= 0]
            assert (shown["evidence_of"], rows) == (evidence["table"], expected)


def test_some_evidence_is_on_the_second_gpu():
    path = ROOT / "tests/unit/two_gpus/data/training_late_rank.gpuviz"
    recording = gpuviz.load(path)

    rows = recording.table("shown").to_pylist()

    (found,) = [row for row in rows if row["evidence_of"] == "memory_events" and row["evidence"]]
    events = recording.table("memory_events").to_pylist()
    (event,) = found["evidence"]
    assert found["device"] == 1
    assert [row for row in events if row["device"] == 1][event]["action"] == "alloc"


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_windows_are_in_the_recording(path):
    recording = gpuviz.load(path)
    start, end = recording.time_range

    windows = [(row["begin"], row["end"]) for row in recording.table("shown").to_pylist()]

    known = [each for each in windows if each != (-1, -1)]
    assert [each for each in known if not start <= each[0] < each[1] <= end] == []
