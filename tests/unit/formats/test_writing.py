"""Recordings are written atomically, and overwrite nothing without permission."""

import errno
import os
import threading
from pathlib import Path

import pytest

import gpuviz
from gpuviz.data.manifest import Manifest
from gpuviz.errors import RecordingError, RecordingExistsError
from gpuviz.recording import Recording, load
from tests.unit.recording.from_events import rows_table

ROW = {"action": "alloc", "address": 512, "size": 512, "requested_size": 500}


def recording(number=1):
    return Recording({"memory_events": rows_table([ROW] * number)}, Manifest(label=str(number)))


def test_of_writers_at_the_same_time_one_wins_and_the_others_are_told(tmp_path):
    path = tmp_path / "run.gpuviz"
    begin = threading.Barrier(8)
    saved, refused = [], []

    def save(number):
        begin.wait()
        try:
            recording(number).save(path)
            saved.append(number)
        except RecordingExistsError:
            refused.append(number)

    threads = [threading.Thread(target=save, args=(number,)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(saved) == 1
    assert len(refused) == 7
    assert load(path).manifest.label == str(saved[0])
    assert [file.name for file in tmp_path.iterdir()] == ["run.gpuviz"]


@pytest.mark.parametrize("links", [True, False])
def test_what_came_to_be_meanwhile_is_kept(tmp_path, monkeypatch, links):
    path = tmp_path / "run.gpuviz"
    link = os.link

    def no_link(source, target):
        path.write_text("precious")
        if not links:
            raise OSError(errno.EPERM, "Operation not permitted")
        link(source, target)

    monkeypatch.setattr(os, "link", no_link)

    with pytest.raises(RecordingExistsError, match=r"run\.gpuviz exists"):
        recording().save(path)

    assert path.read_text() == "precious"
    assert [file.name for file in tmp_path.iterdir()] == ["run.gpuviz"]


def test_a_file_system_without_hard_links_is_written_to(tmp_path, monkeypatch):
    def no_link(source, target):
        raise OSError(errno.EPERM, "Operation not permitted", source, target)

    monkeypatch.setattr(os, "link", no_link)

    path = recording(3).save(tmp_path / "run.gpuviz")

    assert load(path).manifest.events == 3
    assert [file.name for file in tmp_path.iterdir()] == ["run.gpuviz"]


@pytest.mark.parametrize("overwrite", [True, False])
def test_a_failing_disk_leaves_what_was_there(tmp_path, monkeypatch, overwrite):
    path = tmp_path / "run.gpuviz"
    if overwrite:
        recording(2).save(path)

    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Manifest, "to_json", full)

    with pytest.raises(OSError, match="No space left"):
        recording(1).save(path, overwrite=overwrite)

    assert [file.name for file in tmp_path.iterdir()] == (["run.gpuviz"] if overwrite else [])
    if overwrite:
        assert load(path).manifest.label == "2"


def save(path):
    recording().save(path, overwrite=True)


def report(path):
    recording().report(path, overwrite=True)


def export(path):
    recording().export(path, "arrow")


@pytest.mark.parametrize("write", [save, report, export])
def test_an_error_of_the_disk_names_what_was_to_be_written(tmp_path, write):
    path = tmp_path / "none" / "run"

    with pytest.raises(FileNotFoundError) as error:
        write(path)

    assert error.value.filename == str(path)
    assert str(error.value) == f"[Errno 2] No such file or directory: '{path}'"


@pytest.mark.parametrize("write", [save, report])
def test_a_folder_is_not_replaced_by_a_file(tmp_path, write):
    with pytest.raises(IsADirectoryError, match=rf"Is a directory: '{tmp_path}'$"):
        write(tmp_path)


def test_a_full_disk_is_told_with_the_file_that_it_has_no_room_for(tmp_path, monkeypatch):
    def full(*_args):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Manifest, "to_json", full)

    with pytest.raises(OSError, match=r"No space left on device: '.*run\.gpuviz'$"):
        recording().save(tmp_path / "run.gpuviz")


def test_a_link_that_leads_nowhere_counts_as_something(tmp_path):
    path = tmp_path / "run.gpuviz"
    path.symlink_to(tmp_path / "elsewhere")

    with pytest.raises(RecordingExistsError):
        recording().save(path)

    assert not Path(tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("name", ["run.html", "run.HTM"])
def test_a_recording_is_not_written_to_a_name_for_a_report(tmp_path, name):
    with pytest.raises(RecordingError, match=rf"{name} is a name for a report"):
        recording().save(tmp_path / name)
    with (
        pytest.raises(RecordingError, match=r"record to run\.gpuviz"),
        gpuviz.record(tmp_path / name, device=gpuviz.SimulatedGPU()),
    ):
        pass

    assert list(tmp_path.iterdir()) == []


def test_a_report_is_not_written_to_a_name_for_a_recording(tmp_path):
    for page in (recording(), gpuviz.diff(recording(), recording())):
        with pytest.raises(RecordingError, match=r"choose run\.html"):
            page.report(tmp_path / "run.gpuviz")

    assert list(tmp_path.iterdir()) == []
