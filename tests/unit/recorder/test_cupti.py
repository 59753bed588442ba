"""Recordings without CUPTI."""

import warnings
from pathlib import Path

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.recorder import cupti
from gpuviz.recorder.calibration import tracing_costs
from gpuviz.recorder.recorder import Recorder
from gpuviz.recorder.tracer import TracerOptions
from tests.unit.recorder.simulated_source import SimulatedSource


def test_a_library_that_is_no_cupti_is_refused():
    libc = next(Path("/lib").glob("*/libc.so.6"))

    with pytest.raises(RuntimeError, match="has no cupti"):
        _core.CuptiTracer(str(libc), _core.Session())


def test_the_cost_of_recording_is_unknown_without_a_context():
    with pytest.raises(RuntimeError, match="CUDA"):
        _core.CalibrationCalls()

    assert tracing_costs("libcupti.so.13") == {}


def test_memory_is_recorded_without_cupti_and_the_reason_told_once(tmp_path, monkeypatch):
    broken = tmp_path / "libcupti.so.13"
    broken.write_text("nothing")
    monkeypatch.setattr(cupti, "find_cupti", lambda _: broken)
    monkeypatch.setattr(cupti, "_warned", set())

    def record():
        source = SimulatedSource()
        tracer = cupti.CuptiTracing(13, TracerOptions())
        with Recorder(source, None, stacks=True, max_events=100, tracer=tracer) as recorder:
            source.free(source.allocate(1000))
        return recorder

    with pytest.warns(
        RuntimeWarning, match="Only memory is recorded, streams are not: CUPTI cannot be"
    ):
        recorder = record()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again = record()

    for each in (recorder, again):
        assert not each.status().streams
        assert each.status().notes[0].startswith("Only memory is recorded, streams are not")
        assert each.recording.notes[1:] == each.status().notes
        assert each.recording.table("memory_events").num_rows == 4


def test_lost_activities_are_counted_and_told():
    gpu = gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)
    with gpuviz.record(device=gpu, max_events=100) as recorder:
        for _ in range(3):
            for _ in range(200):
                gpu.launch("step", duration=1e-6)
            gpu.synchronize()
            assert recorder.recording.table("activities").num_rows > 0
    recording = recorder.recording

    rows = sum(recording.table(name).num_rows for name in ("activities", "api_calls"))
    assert recording.manifest.dropped_oldest_activities > 0
    assert rows < 1200
    assert not recording.is_complete
    assert any("oldest rows of activities" in note for note in recording.notes)
