"""A part folder, or its parent, that disappears while recording: every row is kept."""

import shutil

import pytest

import gpuviz
from gpuviz.recording import load


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.fixture
def gpu():
    return gpuviz.SimulatedGPU()


def remove(folder):
    """Remove a folder into which another thread may be writing."""
    shutil.rmtree(folder.rename(folder.with_name("removed")))


def sizes(recording):
    events = recording.tables["memory_events"].to_pylist()
    return [row["requested_size"] for row in events if row["action"] == "alloc"]


def recorded(gpu, path, lose):
    """Return a recorder that recorded two allocations before its files were lost and one after."""
    recorder = gpuviz.record(path, device=gpu)
    recorder.start()
    kept = [gpu.empty(1000), gpu.empty(2000)]
    assert sizes(recorder.recording) == [1000, 2000]
    lose()
    kept.append(gpu.empty(3000))
    return recorder


@pytest.mark.parametrize("lost", ["part", "folder"])
def test_all_rows_stay_in_memory_and_reach_the_path(gpu, folder, lost):
    path = folder / "run.gpuviz"
    gone = folder if lost == "folder" else folder / "run.gpuviz.part"

    recorder = recorded(gpu, path, lambda: remove(gone))
    so_far = recorder.recording
    notes = recorder.status().notes
    recording = recorder.stop()

    assert sizes(so_far) == sizes(recording) == sizes(load(path)) == [1000, 2000, 3000]
    assert "the recording continues in memory" in " ".join(notes)
    assert "continues in memory" not in " ".join(recording.notes)
    assert [file.name for file in folder.iterdir()] == ["run.gpuviz"]


def test_a_file_that_disappears_is_noticed(gpu, folder):
    path = folder / "run.gpuviz"

    recorder = recorded(gpu, path, (folder / "run.gpuviz.part" / "memory_events.arrow").unlink)
    recorder.read_statistics()
    notes = recorder.status().notes

    assert "was removed while recording" in " ".join(notes)
    assert sizes(recorder.stop()) == [1000, 2000, 3000]


def test_a_path_that_cannot_be_written_any_more_leaves_the_recording_in_memory(gpu, folder):
    path = folder / "run.gpuviz"

    def lose():
        remove(folder)
        folder.write_text("a file in place of the folder")

    recorder = recorded(gpu, path, lose)
    with pytest.warns(RuntimeWarning, match=r"in memory only, save\(\) it to another path"):
        recording = recorder.stop()

    assert sizes(recording) == sizes(recorder.recording) == [1000, 2000, 3000]
    saved = recording.save(folder.with_name("saved.gpuviz"))
    assert sizes(load(saved)) == [1000, 2000, 3000]
