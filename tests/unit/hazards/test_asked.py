"""Recordings that look for hazards and for work on the default stream."""

import zipfile

import pytest

import gpuviz
from gpuviz.hazards import verdict as verdicts
from gpuviz.hazards.verdict import FOUND, NO_VERDICT, verdict

LONG_S = 1e-3
COUNT = "1 hazard between streams: 1 probable. The first: read without waiting for the write, by"


def recorded(path, between=lambda *_: None, launch=True, **options):
    gpu = gpuviz.SimulatedGPU(real_time=False)
    recorder = gpuviz.record(path, device=gpu, **options)
    recorder.announces = False
    with recorder:
        s, t = gpu.Stream(non_blocking=True), gpu.Stream(non_blocking=True)
        with s:
            a = gpu.empty(1 << 20)
            if launch:
                gpu.launch("write", writes=[a], duration=LONG_S, share=0.1)
        between(gpu, s, t)
        with t:
            if launch:
                gpu.launch("read", reads=[a], duration=LONG_S, share=0.1)
        gpu.synchronize()
    return recorder


def stored(path):
    with zipfile.ZipFile(path) as archive:
        return {
            name
            for name in ("findings", "hazards")
            if f"derived/{name}.arrow" in archive.namelist()
        }


def test_the_file_of_a_recorder_has_the_hazards_it_was_asked_for(tmp_path, monkeypatch):
    recorder = recorded(tmp_path / "run.gpuviz", hazards=True)
    recorded(tmp_path / "plain.gpuviz")

    assert stored(tmp_path / "run.gpuviz") == {"hazards"}
    assert stored(tmp_path / "plain.gpuviz") == set()
    assert gpuviz.load(tmp_path / "run.gpuviz").manifest.hazards
    monkeypatch.setattr("gpuviz.hazards.known.judge", None)
    assert [each.kind for each in gpuviz.load(tmp_path / "run.gpuviz").hazards()] == ["RAW"]
    assert recorder.verdict.exit_code == FOUND
    assert recorder.verdict.found == (
        f"{COUNT} write in recorded ({__file__}:24) and read in recorded ({__file__}:28).",
    )


def test_hazards_are_judged_in_memory_too():
    assert recorded(None, hazards=True).verdict.exit_code == FOUND
    assert recorded(None).verdict is None


def test_ordered_streams_have_a_verdict():
    found = recorded(None, lambda _, s, t: t.wait_event(s.record()), hazards=True).verdict

    assert (found.exit_code, found.sentences) == (0, ("No hazards between streams.",))


def test_a_latent_hazard_is_told_but_is_not_harmful():
    def free(gpu, s, t):
        with s:
            other = gpu.empty(1 << 20)
        t.wait_event(s.record())
        with t:
            gpu.launch("last", reads=[other], duration=LONG_S, share=0.1)
        del other

    found = recorded(None, free, hazards=True).verdict
    assert "1 hazard between streams: 1 latent" in found.found[0]
    assert found.exit_code == 0


def test_without_launches_there_is_no_verdict():
    found = recorded(None, launch=False, hazards=True, forbid_default_stream=True).verdict

    assert found.exit_code == NO_VERDICT
    assert [each.split(":")[0] for each in found.unknown] == ["no verdict"] * 2


def test_dropped_events_make_a_verdict_impossible():
    recorder = recorded(None, hazards=True, max_events=1)
    recording = recorder.recording

    assert recording.dropped or recorder.verdict.exit_code == FOUND
    lost = gpuviz.Recording(
        recording.tables,
        type(recording.manifest)(dropped_activities=1, hazards=True),
    )
    assert verdict(lost).exit_code == NO_VERDICT
    assert "Events were dropped" in verdict(lost).unknown[0]


def test_a_failure_of_the_engine_ends_no_recording(monkeypatch, tmp_path):
    def fail(_):
        raise ZeroDivisionError("engine")

    monkeypatch.setattr("gpuviz.hazards.known.judge", fail)
    recorder = recorded(tmp_path / "run.gpuviz", hazards=True)

    assert recorder.verdict.unknown == ("no verdict: ZeroDivisionError: engine",)
    assert stored(tmp_path / "run.gpuviz") == set()


@pytest.mark.parametrize("option", ["streams", "stacks", "launch_sites", "launch_blocks"])
def test_hazards_need_what_they_follow_from(option):
    with pytest.raises(ValueError, match=f"hazards=True needs {option}=True"):
        gpuviz.record(device=gpuviz.SimulatedGPU(), hazards=True, **{option: False})


def test_work_on_the_default_stream_needs_no_blocks():
    recorder = recorded(None, forbid_default_stream=True, launch_blocks=False)

    assert recorder.verdict.sentences == ("Nothing on the default stream.",)
    with pytest.raises(ValueError, match="forbid_default_stream=True needs stacks=True"):
        gpuviz.record(device=gpuviz.SimulatedGPU(), forbid_default_stream=True, stacks=False)


def test_work_on_the_default_stream_is_listed_by_line_and_kind():
    def work(gpu, s, _):
        a = gpu.empty(1 << 20)
        for _ in range(3):
            gpu.launch("step", writes=[a], duration=LONG_S)
        gpu.copy_to_host(a)
        gpu.fill(a)
        with s:
            gpu.launch("elsewhere", writes=[a], duration=LONG_S)

    recorder = recorded(None, work, forbid_default_stream=True)
    rows = recorder.recording.default_stream_work().to_pylist()

    assert [(row["kind"], row["count"], row["source"]) for row in rows] == [
        ("kernel", 3, 'gpu.launch("step", writes=[a], duration=LONG_S)'),
        ("memcpy", 1, "gpu.copy_to_host(a)"),
        ("memset", 1, "gpu.fill(a)"),
    ]
    assert rows[0]["total_ns"] == 3 * 10**6
    assert recorder.verdict.exit_code == FOUND
    assert recorder.verdict.found[0].startswith("5 operations on the default stream, from 3 lines.")


def test_lost_activities_leave_the_default_stream_unknown():
    recording = recorded(None).recording
    manifest = type(recording.manifest)(dropped_activities=1, forbid_default_stream=True)

    assert verdict(gpuviz.Recording(recording.tables, manifest)).exit_code == NO_VERDICT
    assert verdicts.verdict(recording).sentences == ()
