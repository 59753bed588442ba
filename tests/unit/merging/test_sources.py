"""Folders and patterns with files that cannot be merged: the others are, and a note says why."""

import os
import shutil

import pytest

import gpuviz
from gpuviz.errors import FormatError, GpuvizError
from gpuviz.formats import detection
from tests.unit.merging.processes_of_a_run import process, program


@pytest.fixture(scope="module")
def recording():
    return program(1)


def link_to_itself(path, _recording):
    path.symlink_to(path)


def link_to_nowhere(path, _recording):
    path.symlink_to(path.with_name("gone"))


def link_through_a_file(path, _recording):
    path.symlink_to(path.with_name("0.gpuviz") / "inside")


def fifo(path, _recording):
    os.mkfifo(path)


def folder(path, _recording):
    path.mkdir()


def empty_file(path, _recording):
    path.touch()


def merged(path, recording):
    gpuviz.merge([process(recording, 8), process(recording, 9)]).save(path)


def impossible_times(path, recording):
    process(recording, 9, start_unix_ns=2**62 - 1).save(path)


REASONS = {
    link_to_itself: "cannot be read (Too many levels of symbolic links)",
    link_to_nowhere: "cannot be read (No such file or directory)",
    link_through_a_file: "cannot be read (Not a directory)",
    fifo: "a FIFO; expected a file",
    folder: "manifest.json: missing",
    empty_file: "not a gpuviz recording",
    merged: "is a merged recording",
    impossible_times: "its clocks have times that are not possible",
}


@pytest.mark.parametrize("name", ["1.gpuviz", "1.gpuviz.part"])
@pytest.mark.parametrize("make", REASONS, ids=lambda make: make.__name__)
def test_what_cannot_be_merged_is_left_out_with_its_reason(recording, tmp_path, make, name):
    process(recording, 0).save(tmp_path / "0.gpuviz")
    bad = tmp_path / name
    make(bad, recording)

    for source in (tmp_path, str(tmp_path / "*.gpuviz*"), str(tmp_path / "[01].*")):
        found = gpuviz.merge(source)
        assert len(found.processes) == 1
        (note,) = (note for note in found.notes if note.startswith("A file was left out: "))
        assert str(bad) in note
        assert REASONS[make] in note
    with pytest.raises((GpuvizError, OSError)):
        gpuviz.merge([tmp_path / "0.gpuviz", bad])


def test_with_nothing_left_the_error_has_the_reasons(tmp_path):
    (tmp_path / "0.gpuviz").touch()
    with pytest.raises(FormatError, match=r"0\.gpuviz: not a gpuviz recording"):
        gpuviz.merge(tmp_path)
    (tmp_path / "1.gpuviz").symlink_to(tmp_path / "gone")

    with pytest.raises(GpuvizError, match=r"None of 2 files can be merged: .*0\.gpuviz: not a gpu"):
        gpuviz.merge(tmp_path)
    with pytest.raises(GpuvizError, match=r"1\.gpuviz: cannot be read \(No such file"):
        gpuviz.merge(tmp_path)


@pytest.mark.parametrize("is_finished", [False, True])
def test_a_recording_that_ends_while_it_is_read_is_read_as_a_whole(
    recording, tmp_path, monkeypatch, is_finished
):
    process(recording, 0).save(tmp_path / "0.gpuviz")
    growing = tmp_path / "1.gpuviz.part"
    growing.mkdir()
    (growing / "manifest.json").write_text("{}")
    known = detection.detect

    def detect(path):
        if path == growing and growing.exists():
            shutil.rmtree(growing)
            if is_finished:
                process(recording, 1).save(tmp_path / "1.gpuviz")
        return known(path)

    monkeypatch.setattr(detection, "detect", detect)

    found = gpuviz.merge(tmp_path)

    assert len(found.processes) == 1 + is_finished
    assert any(str(growing) in note for note in found.notes) == (not is_finished)
