"""Starts that are refused or fail, and what they leave."""

import pytest

import gpuviz
from gpuviz.errors import RecorderError, RecordingExistsError, SpoolError
from tests.unit.recorder.left_by_recorders import actions, threads_when_settled
from tests.unit.recorder.simulated_source import SimulatedSource


def test_a_second_start_is_refused_and_harms_nothing(source, new_recorder):
    recorder = new_recorder(source)
    recorder.start()

    with pytest.raises(RecorderError, match=r"started before; create a new one with record\(\)"):
        recorder.start()
    source.allocate(1234)

    assert actions(recorder.stop()) == ["segment_alloc", "alloc"]


def test_another_recorder_waits_until_the_first_has_stopped(source, new_recorder):
    first, second = new_recorder(source), new_recorder(SimulatedSource())
    first.start()

    with pytest.raises(RecorderError, match="Another recorder is active in this process; stop it"):
        second.start()
    assert first.is_recording
    first.stop()
    second.start()

    assert second.is_recording


def test_a_recorder_that_never_started_says_so(source, new_recorder):
    recorder = new_recorder(source)

    with pytest.raises(RecorderError, match=r"is not active; call start\(\) first"):
        recorder.stop()
    with pytest.raises(RecorderError, match=r"Nothing has been recorded yet; call start\(\)"):
        _ = recorder.recording
    assert not recorder.status().recording


@pytest.mark.parametrize("count", [0, -1])
def test_max_events_below_1_is_named(source, new_recorder, count):
    with pytest.raises(ValueError, match=f"max_events must be at least 1, got {count}"):
        new_recorder(source, max_events=count)


def test_a_path_that_exists_is_refused_and_kept(source, new_recorder, tmp_path):
    path = tmp_path / "run.gpuviz"
    path.write_text("precious")

    with pytest.raises(RecordingExistsError, match=r"run.gpuviz exists; record to another path or"):
        new_recorder(source, path).start()

    assert [file.name for file in tmp_path.iterdir()] == ["run.gpuviz"]
    assert path.read_text() == "precious"


def test_a_file_to_be_overwritten_is_kept_until_the_new_recording_is_complete(tmp_path):
    path = tmp_path / "run.gpuviz"
    path.write_text("precious")
    gpu = gpuviz.SimulatedGPU()
    with gpuviz.record(path, device=gpu, overwrite=True):
        gpu.empty(1234)
        during = path.read_text()

    assert during == "precious"
    assert 1234 in gpuviz.load(path).table("memory_events")["requested_size"].to_pylist()
    assert [file.name for file in tmp_path.iterdir()] == ["run.gpuviz"]


def test_a_folder_is_not_overwritten(tmp_path):
    (tmp_path / "run.gpuviz").mkdir()

    with pytest.raises(RecordingExistsError, match=r"run.gpuviz exists"):
        gpuviz.record(tmp_path / "run.gpuviz", device=gpuviz.SimulatedGPU(), overwrite=True).start()


def test_a_part_directory_that_exists_is_refused_with_the_way_to_load_it(
    source,
    new_recorder,
    tmp_path,
):
    (tmp_path / "run.gpuviz.part").mkdir()

    with pytest.raises(RecordingExistsError, match=r"load it with gpuviz.load\(.*run.gpuviz.part"):
        new_recorder(source, tmp_path / "run.gpuviz").start()


def test_a_recorder_that_could_not_start_may_start_once_the_reason_is_gone(
    source,
    new_recorder,
    tmp_path,
):
    path = tmp_path / "run.gpuviz"
    path.touch()
    recorder = new_recorder(source, path)
    with pytest.raises(RecordingExistsError):
        recorder.start()
    path.unlink()

    with recorder:
        source.allocate(1234)

    assert actions(gpuviz.load(path)) == ["segment_alloc", "alloc"]


def test_a_missing_folder_is_named(source, new_recorder, tmp_path):
    path = tmp_path / "missing" / "run.gpuviz"

    with pytest.raises(SpoolError, match=f"the folder {path.parent} does not exist; create it"):
        new_recorder(source, path).start()


@pytest.mark.parametrize("step", ["tables", "describe", "begin"])
@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_source_that_fails_to_begin_leaves_nothing_behind(
    new_recorder,
    tmp_path,
    step,
    error,
):
    class Failing(SimulatedSource):
        fails = True

    def fail(self, *arguments):
        getattr(SimulatedSource, step)(self, *arguments)
        if self.fails:
            raise error("no luck")
        return {}

    setattr(Failing, step, fail)
    source = Failing()
    recorder = new_recorder(source, tmp_path / "run.gpuviz")

    with pytest.raises(error, match="no luck"):
        recorder.start()

    assert list(tmp_path.iterdir()) == []
    assert not recorder.is_recording
    assert threads_when_settled() == set()
    assert ("end" in source.calls) == (step != "tables")
    source.fails = False
    with recorder:
        source.allocate(1234)
    assert actions(gpuviz.load(tmp_path / "run.gpuviz")) == ["segment_alloc", "alloc"]
