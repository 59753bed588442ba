"""Start and stop of recorders: states, ends and cleanup."""

import gc
import threading
import weakref

import pytest

import gpuviz
from gpuviz.errors import RecorderError
from gpuviz.recorder.recorder import Recorder
from gpuviz.recorder.store import Store
from tests.unit.recorder.left_by_recorders import actions, own_threads, threads_when_settled
from tests.unit.recorder.simulated_source import SimulatedSource


def test_start_and_stop_record_what_happens_in_between(source, new_recorder):
    recorder = new_recorder(source)

    recorder.start()
    assert recorder.is_recording
    source.free(source.allocate(1234))
    recording = recorder.stop()
    source.free(source.allocate(1234))

    assert not recorder.is_recording
    assert actions(recording) == ["segment_alloc", "alloc", "free_requested", "free_completed"]
    assert recording.table("memory_events")["requested_size"].to_pylist() == [0, 1234, 1234, 1234]
    assert recording.is_complete
    assert recorder.recording is recording


def test_a_recorder_shows_its_state(source, new_recorder):
    recorder = new_recorder(source)
    shown = [repr(recorder)]

    with recorder:
        shown.append(repr(recorder))
    shown.append(repr(recorder))

    assert shown == ["<Recorder: not started>", "<Recorder: recording>", "<Recorder: stopped>"]


def test_a_with_block_records_and_gives_the_recorder(source, new_recorder):
    with new_recorder(source) as recorder:
        source.allocate(1234)

    assert isinstance(recorder, Recorder)
    assert actions(recorder.recording) == ["segment_alloc", "alloc"]


@pytest.mark.parametrize(
    ("error", "is_noted"), [(ValueError, True), (KeyboardInterrupt, False), (SystemExit, False)]
)
def test_an_exception_in_the_block_ends_the_recording_and_passes(
    source, new_recorder, error, is_noted
):
    recorder = new_recorder(source)

    def program():
        source.allocate(1234)
        raise error("of the program")

    with pytest.raises(error, match="of the program"), recorder:
        program()

    assert not recorder.is_recording
    assert actions(recorder.recording) == ["segment_alloc", "alloc"]
    assert recorder.recording.is_complete
    noted = [note for note in recorder.recording.notes if "ended with ValueError" in note]
    assert len(noted) == is_noted


def test_a_block_may_stop_its_recorder_itself(source, new_recorder):
    with new_recorder(source) as recorder:
        recording = recorder.stop()

    assert recorder.recording is recording


def test_a_source_is_called_in_the_order_of_its_protocol(source, new_recorder):
    with new_recorder(source):
        source.calls.append("recording")

    assert source.calls == ["tables", "describe", "begin", "recording", "end"]


def test_a_recorder_does_not_start_again_after_its_stop(source, new_recorder):
    recorder = new_recorder(source)
    recorder.start()
    recording = recorder.stop()

    with pytest.raises(RecorderError, match=r"started before; create a new one with record\(\)"):
        recorder.start()
    assert recorder.stop() is recording


def test_a_source_that_fails_to_end_loses_no_event(new_recorder, tmp_path):
    class Failing(SimulatedSource):
        def end(self):
            super().end()
            raise OSError("no luck")

    source = Failing()
    recorder = new_recorder(source, tmp_path / "run.gpuviz")
    recorder.start()
    source.allocate(1234)

    with pytest.raises(OSError, match="no luck"):
        recorder.stop()

    assert not recorder.is_recording
    assert threads_when_settled() == set()
    assert actions(gpuviz.load(tmp_path / "run.gpuviz")) == ["segment_alloc", "alloc"]


def test_no_thread_is_left_after_stop(source, new_recorder):
    recorder = new_recorder(source)

    recorder.start()
    assert own_threads() == {"gpuviz-pump", "gpuviz-collect"}
    recorder.stop()

    assert threads_when_settled() == set()


def test_nothing_is_kept_alive_by_a_recorder_that_is_gone():
    source = SimulatedSource()
    recorder = Recorder(source, None, stacks=False, max_events=100)
    with recorder:
        source.allocate(1234)
    held = [weakref.ref(each) for each in (recorder, source, recorder.recording)]

    del recorder, source
    gc.collect()

    assert [reference() for reference in held] == [None, None, None]


def test_what_is_printed_at_exit_keeps_no_gpu_alive():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu, hazards=True):
        kept = gpu.empty(1234)
    reference = weakref.ref(gpu._allocator)

    del gpu, kept
    gc.collect()

    assert reference() is None


def test_a_recorder_without_a_reference_goes_on():
    source = SimulatedSource()
    Recorder(source, None, stacks=False, max_events=100).start()
    gc.collect()

    source.allocate(1234)

    active = Recorder._active
    assert actions(active.stop()) == ["segment_alloc", "alloc"]


def test_one_of_many_threads_that_start_and_stop_at_once_succeeds(source, new_recorder):
    recorders = [new_recorder(source.again()) for _ in range(8)]
    together = threading.Barrier(8)
    outcomes = []

    def attempt(method):
        together.wait()
        try:
            method()
        except RecorderError:
            outcomes.append("refused")
        else:
            outcomes.append("done")

    def all_at_once(methods):
        threads = [threading.Thread(target=attempt, args=(method,)) for method in methods]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    all_at_once([recorder.start for recorder in recorders])
    assert sorted(outcomes) == ["done"] + ["refused"] * 7
    [active] = [recorder for recorder in recorders if recorder.is_recording]
    outcomes.clear()
    all_at_once([active.stop] * 8)

    assert outcomes == ["done"] * 8


def test_whoever_records_in_the_background_can_make_room(source, new_recorder, monkeypatch):
    background, other = new_recorder(source), new_recorder(SimulatedSource())
    background.start()
    with pytest.raises(RecorderError, match="Another recorder is active"):
        other.start()
    asked = []
    monkeypatch.setattr(
        Recorder, "before_start", lambda starting: asked.append(starting) or background.stop()
    )
    other.start()

    assert asked == [other]
    assert (background.is_recording, other.is_recording) == (False, True)


def test_a_start_reads_its_rows_only_for_listeners(source, new_recorder, monkeypatch):
    asked, heard = [], []
    contents = Store.contents

    def counted(store, *arguments):
        asked.append(store)
        return contents(store, *arguments)

    monkeypatch.setattr(Store, "contents", counted)

    with new_recorder(source):
        assert not asked
    asked.clear()
    followed = new_recorder(source.again())
    followed.subscribe(heard.append)
    with followed:
        assert len(asked) == 1
        assert heard[-1].number > heard[0].number
        assert "devices" in dict(heard[-1].tables)
