"""Findings and what-if in files: kept if they belong to the recording, else recomputed."""

import zipfile
from pathlib import Path

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.conclusions import ranking
from gpuviz.conclusions import store as computed
from gpuviz.data import conclusions as stored
from gpuviz.data.conclusions import stored_conclusions
from gpuviz.formats.gpuviz import DERIVED_FOLDER
from gpuviz.recording import load
from tests.unit.data.test_derived import edited
from tests.unit.report.recordings import SEGMENT, make_recording, small_program

SHIPPED = sorted((Path(gpuviz.__file__).parent / "commands" / "recordings").iterdir())
# Beside PyTorch's own allocator, no other settings can be tried.
OF_ONE_ALLOCATOR = [
    path for path in SHIPPED if path.stem not in {"one_pool_separate", "one_pool_watched"}
]
TABLES = ("conclusions", "what_if")


def shipped(name):
    return load(next(path for path in SHIPPED if path.stem == name))


@pytest.fixture
def uncomputed(monkeypatch):
    """Return what a test asked to compute: names of conclusions."""
    asked = []

    def recorded(module, name):
        original = getattr(module, name)

        def compute(*arguments, **options):
            asked.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(module, name, compute)

    recorded(ranking, "findings")
    recorded(computed, "what_if")
    return asked


def without_conclusions(recording):
    return gpuviz.Recording(recording.tables, recording.manifest)


@pytest.mark.parametrize("path", OF_ONE_ALLOCATOR, ids=lambda path: path.stem)
def test_a_report_and_its_file_lead_to_the_same_conclusions_at_once(path, tmp_path, uncomputed):
    recording = load(path)
    report = recording.report(tmp_path / "run.html")
    asked = len(uncomputed)

    for loaded in (load(report), load(load(report).save(tmp_path / "run.gpuviz"))):
        assert loaded.findings() == recording.findings() == findings(without_conclusions(loaded))
        assert loaded.what_if().equals(recording.what_if())
        assert loaded.table("conclusions").equals(recording.table("conclusions"))
        assert loaded.table("what_if").equals(recording.table("what_if"))
    assert len(uncomputed) == asked


def test_the_other_settings_of_all_devices_are_stored(tmp_path):
    rows = [*small_program(), *small_program(device=1, at=2 * SEGMENT)]
    rows.sort(key=lambda row: row["time"])
    recording = make_recording(rows, initial_events=4, devices=2)
    loaded = load(recording.report(tmp_path / "run.html"))

    assert set(loaded.table("what_if")["device"].to_pylist()) == {0, 1}
    for device in (0, 1):
        assert loaded.what_if(device=device).equals(recording.what_if(device=device))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_findings_of_every_kind_are_possible_in_a_file(path):
    recording = load(path)
    small = recording.findings(small=True)
    ranking.conclusions.keep(recording, small)
    table = stored.marked({"conclusions": recording.table("conclusions")}, recording)

    assert small
    loaded = gpuviz.Recording(recording.tables, recording.manifest, table)
    assert stored_conclusions(loaded).keys() == {"conclusions"}
    assert loaded.findings() == small


def test_other_settings_and_small_findings_are_computed(tmp_path):
    loaded = load(shipped("kmeans").report(tmp_path / "run.html"))

    assert loaded.what_if("cupy")["settings"].to_pylist() == ["recorded", "cupy"]
    assert len(loaded.findings(small=True)) > len(loaded.findings())


def test_saving_computes_only_what_is_cheap_and_keeps_what_is_known(
    tmp_path, uncomputed, monkeypatch
):
    recording = shipped("monte_carlo")
    members = {}
    for name, most in (("cheap", 10_000), ("long", 10)):
        monkeypatch.setattr(computed, "_MOST_CHEAP_ROWS", most)
        path = without_conclusions(recording).save(tmp_path / f"{name}.gpuviz")
        with zipfile.ZipFile(path) as archive:
            members[name] = {
                each for each in TABLES if f"derived/{each}.arrow" in archive.namelist()
            }
    recording.what_if()
    recording.findings()

    assert members == {"cheap": {"conclusions"}, "long": set()}
    assert computed.for_file(load(recording.save(tmp_path / "known.gpuviz"))).keys() == {
        "conclusions",
        "hazards",
        "what_if",
    }
    assert uncomputed == ["findings", "what_if", "findings"]


def test_a_rule_that_fails_does_not_keep_a_recording_from_being_saved(tmp_path, monkeypatch):
    def fail(_):
        raise ZeroDivisionError

    recording = without_conclusions(shipped("monte_carlo"))
    monkeypatch.setattr(ranking, "findings", fail)
    path = recording.save(tmp_path / "run.gpuviz")
    monkeypatch.undo()

    assert load(path).findings() == recording.findings()


def test_a_recorder_stores_no_conclusions(tmp_path):
    with gpuviz.record(tmp_path / "run.gpuviz", device=gpuviz.SimulatedGPU()):
        pass
    with zipfile.ZipFile(tmp_path / "run.gpuviz") as archive:
        assert {name for name in archive.namelist() if "conclusions" in name} == set()


def test_a_report_of_many_events_contains_only_other_settings_that_were_asked_for(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(computed, "_MOST_REPLAYED", 10)
    recording = shipped("monte_carlo")
    before = recording.report(tmp_path / "before.html")
    recording.what_if()
    after = recording.report(tmp_path / "after.html")

    assert "Not computed, because the recording has many memory events." in before.read_text()
    assert "max_split_size_mb:32" not in before.read_text()
    assert "max_split_size_mb:32" in after.read_text()


@pytest.mark.parametrize("options", [{"window": (10_000_000, 60_000_000)}, {"redact": True}])
def test_a_part_and_a_redacted_report_conclude_from_what_they_show(options, tmp_path, uncomputed):
    recording = shipped("image_pipeline")
    whole = recording.findings()
    loaded = load(recording.report(tmp_path / "run.html", **options))
    del uncomputed[:]

    assert loaded.findings() == findings(loaded) != whole
    assert uncomputed == []


def test_findings_of_another_version_or_recording_are_computed_again(tmp_path, monkeypatch):
    recording, other = shipped("monte_carlo"), shipped("fft_filter")
    path = recording.save(tmp_path / "run.gpuviz")
    with zipfile.ZipFile(other.save(tmp_path / "other.gpuviz")) as archive:
        foreign = archive.read(f"{DERIVED_FOLDER}conclusions.arrow")
    stale = edited(
        recording.save(tmp_path / "stale.gpuviz"),
        lambda members: members.update({f"{DERIVED_FOLDER}conclusions.arrow": foreign}),
    )
    found = load(stale).findings()
    monkeypatch.setattr(stored, "CONCLUSIONS_VERSION", stored.CONCLUSIONS_VERSION + 1)
    monkeypatch.setattr(ranking, "findings", lambda _: ())

    assert found == recording.findings()
    assert load(path).findings() == ()
