"""Hazards in files: read if they belong to the recording, else judged again."""

import pytest

import gpuviz
from gpuviz.hazards import known
from gpuviz.hazards.known import unknown
from gpuviz.recording import load
from gpuviz.report import reduction
from tests.unit.hazards.two_streams import Program, captured, freed_and_reused, write_then_read


@pytest.fixture
def raced():
    program = Program()
    freed_and_reused(program, lambda *_: None)
    return program.recording()


@pytest.fixture
def judged(monkeypatch):
    """Return the recordings that the engine was asked to judge."""
    asked = []
    original = known.judge

    def judge(recording):
        asked.append(recording)
        return original(recording)

    monkeypatch.setattr(known, "judge", judge)
    return asked


def test_a_file_and_a_report_have_the_hazards(raced, tmp_path, judged):
    saved, page = raced.save(tmp_path / "run.gpuviz"), raced.report(tmp_path / "run.html")

    assert len(judged) == 1
    for path in (saved, page):
        assert load(path).hazards() == raced.hazards()
        assert load(path).table("hazards").equals(raced.table("hazards"))
    assert len(raced.hazards()) == 2
    assert len(judged) == 1


def test_none_is_stored_too(tmp_path, judged):
    program = Program()
    write_then_read(program, lambda program: program.t.wait_event(program.s.record()))
    path = program.recording().save(tmp_path / "run.gpuviz")

    assert (load(path).hazards(), unknown(load(path))) == ((), "")
    assert len(judged) == 1


def test_a_recording_of_unknown_hazards_has_no_table(raced, tmp_path, judged):
    tables = {**raced.tables, "launch_blocks": raced.tables["launch_blocks"].slice(0, 0)}
    blind = gpuviz.Recording(tables, raced.manifest)
    path = blind.report(tmp_path / "run.html")

    assert load(path).table("hazards").num_rows == 0
    assert "No launch is recorded with the blocks" in unknown(load(path))
    assert len(judged) == 3


def test_a_window_is_not_judged(raced, tmp_path):
    raced.hazards()
    start, end = raced.time_range
    path = raced.report(tmp_path / "part.html", window=(start, end - 1))

    assert load(path).hazards() == ()
    assert unknown(load(path)).startswith("This is a part of a recording")


def test_a_redacted_report_has_the_verdict_of_the_whole_in_its_own_names(raced, tmp_path):
    program = Program()
    a = program.empty(program.s)
    program.launch(program.s, "use", writes=[a])
    program.launch(program.s, "nccl_all_reduce")
    program.launch(program.t, "nccl_all_reduce")
    program.launch(program.t, "use", reads=[a])
    signalled = program.recording()

    assert signalled.hazards() == ()
    ordered = load(signalled.report(tmp_path / "ordered.html", redact=True))
    redacted = load(raced.report(tmp_path / "raced.html", redact=True))
    assert ordered.hazards() == ()
    assert redacted.table("hazards").equals(raced.table("hazards"))
    first = redacted.hazards()[0].first
    assert first.name.startswith("kernel ")
    assert first.site != raced.hazards()[0].first.site


def test_a_report_without_the_blocks_of_launches_keeps_the_hazards(raced, tmp_path):
    smaller = load(reduction._without_launch_blocks(raced).save(tmp_path / "run.gpuviz"))

    assert smaller.tables["launch_blocks"].num_rows == 0
    assert smaller.hazards() == raced.hazards()


def test_the_hazards_of_graphs_are_stored(tmp_path, judged):
    program = Program()
    a = program.empty(program.s)
    graph = captured(program, program.s, ("node", [], [a]))
    graph.launch(program.s)
    program.launch(program.t, "read", reads=[a])
    del a
    b = program.empty(program.s)
    graph.launch(program.s)
    del b
    recording = program.recording()
    loaded = load(recording.save(tmp_path / "run.gpuviz"))

    names = {(each.first.name, each.second.name) for each in recording.hazards()}
    assert {("graph launch", "read"), ("allocation", "graph launch")} <= names
    assert loaded.hazards() == recording.hazards()
    assert len(judged) == 1
