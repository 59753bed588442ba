"""What a file concludes is believed only if this user's gpuviz wrote the file."""

import stat
import zipfile
from dataclasses import replace
from html import unescape

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.analysis.derived_tables import derived_for_file
from gpuviz.conclusions import ranking as computed
from gpuviz.data import conclusions, tables
from gpuviz.formats.gpuviz import DERIVED_FOLDER, append_conclusions, read_known, write_archive
from gpuviz.formats.seal import seal
from gpuviz.recording import Recording, load
from tests.unit.data.test_derived import edited, with_table
from tests.unit.formats.false_values import RECORDINGS, single

ADVICE = "Run `pip install evil` <script>alert(1)</script> at once"


@pytest.fixture(autouse=True)
def data(tmp_path, monkeypatch):
    """Return the user's folder of data, without a key."""
    folder = tmp_path / "data"
    monkeypatch.setenv("XDG_DATA_HOME", str(folder))
    return folder


@pytest.fixture
def asked(monkeypatch):
    """Return the recordings whose findings were computed."""
    recordings = []

    def findings(recording):
        recordings.append(recording)
        return ()

    monkeypatch.setattr(computed, "findings", findings)
    return recordings


def forged(path):
    """Write a file with the finding of a stranger, with all marks that can be computed."""
    recording = load(RECORDINGS / "monte_carlo.gpuviz")
    rows = recording.table("conclusions").to_pylist()[:1]
    rows[0] |= {"rule": "R99", "title": ADVICE, "change": ADVICE, "saved_bytes": 1 << 40}
    table = pa.Table.from_pylist(rows, conclusions.schemas()["conclusions"])
    with path.open("x+b") as file:
        write_archive(file, recording, derived_for_file(recording))
        append_conclusions(file, conclusions.marked({"conclusions": table}, recording))
    return path


def test_a_forged_finding_would_be_shown_under_the_own_seal(tmp_path):
    path = forged(tmp_path / "run.gpuviz")

    assert load(path).findings()[0].title == ADVICE


@pytest.mark.parametrize("sealed", [True, False])
def test_a_finding_that_a_stranger_forged_is_not_shown(tmp_path, monkeypatch, sealed):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "stranger") if sealed else "/dev/null")
    path = forged(tmp_path / "run.gpuviz")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))
    recording = load(path)
    page = recording.report(tmp_path / "run.html")

    assert recording.findings() == load(RECORDINGS / "monte_carlo.gpuviz").findings()
    assert "evil" not in unescape(page.read_text())
    assert recording.what_if().num_rows > 1


@pytest.mark.parametrize("name", ["hazards", "what_if", "iterations"])
@pytest.mark.parametrize("version", [0, 1])
def test_a_verdict_that_a_stranger_hid_is_computed(tmp_path, monkeypatch, name, version):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "stranger"))
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        array = gpu.empty(1 << 20)
        for _ in range(4):
            with gpu.Stream(non_blocking=True):
                gpu.launch("step", writes=[array], duration=1e-3)
        gpu.synchronize()
    recording, path = recorder.recording, tmp_path / "run.gpuviz"
    hidden = conclusions.schemas()[name].empty_table()
    monkeypatch.setattr(
        conclusions, "CONCLUSIONS_VERSION", conclusions.CONCLUSIONS_VERSION + version
    )
    with path.open("x+b") as file:
        write_archive(file, recording, derived_for_file(recording))
        append_conclusions(file, conclusions.marked({name: hidden}, recording))
    monkeypatch.undo()
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "own"))
    loaded = load(path)

    assert len(loaded.hazards()) == len(recording.hazards()) > 0
    assert loaded.what_if().num_rows == recording.what_if().num_rows > 1
    assert loaded.iterations().num_rows == recording.iterations().num_rows


def test_conclusions_in_an_own_file_are_read(tmp_path, asked):
    path = single().save(tmp_path / "run.gpuviz")
    count = len(asked)

    load(path).findings()
    assert len(asked) == count


@pytest.mark.parametrize("change", ["one byte", "another comment"])
def test_an_own_file_that_changed_is_not_believed(tmp_path, asked, change):
    path = single().save(tmp_path / "run.gpuviz")
    count, content = len(asked), path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        # The time of a member, which nothing reads.
        place = archive.getinfo("manifest.json").header_offset + 10
    changed = {
        "one byte": content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :],
        "another comment": content[:-9] + bytes(9),
    }
    path.write_bytes(changed[change])

    load(path).findings()
    assert len(asked) == count + 1


@pytest.mark.parametrize("name", ["idle_gaps", "host_waits"])
def test_a_classification_that_a_stranger_forged_is_not_believed(tmp_path, name):
    recording = load(RECORDINGS / "fft_filter.gpuviz")
    made = Recording(recording.tables, recording.manifest).derived[name]
    change = with_table(name, lambda table: table.slice(0, 1))
    path = edited(recording.save(tmp_path / "run.gpuviz"), change)

    again = load(path).save(tmp_path / "again.gpuviz")
    with zipfile.ZipFile(again) as archive:
        written = pa.ipc.open_stream(archive.read(f"{DERIVED_FOLDER}{name}.arrow")).read_all()

    assert made.num_rows > 1
    assert load(path).derived[name].equals(made)
    assert written.num_rows == made.num_rows


def test_the_key_is_made_once_and_readable_by_its_owner_only(tmp_path, data):
    single().save(tmp_path / "a.gpuviz")
    key = data / "gpuviz" / "seal.key"
    content = key.read_bytes()
    single().save(tmp_path / "b.gpuviz")

    assert (key.read_bytes(), len(content)) == (content, 32)
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert [each.name for each in key.parent.iterdir()] == ["seal.key"]


@pytest.mark.parametrize("change", ["readable", "link", "short", "folder", "none"])
def test_a_key_that_others_may_know_is_not_used(tmp_path, data, asked, change):
    path = single().save(tmp_path / "run.gpuviz")
    key, count = data / "gpuviz" / "seal.key", len(asked)
    if change == "readable":
        key.chmod(0o640)
    else:
        key.rename(tmp_path / "key")
    if change == "link":
        key.symlink_to(tmp_path / "key")
    elif change == "short":
        key.write_bytes(b"x")
        key.chmod(0o600)
    elif change == "folder":
        key.mkdir()
    elif change == "none":
        key.parent.rmdir()
        key.parent.touch()

    load(path).findings()
    assert len(asked) == count + 1
    assert load(single().save(tmp_path / "again.gpuviz")).tables == single().tables


@pytest.mark.parametrize("write", ["save", "report"])
def test_a_note_of_a_stranger_is_quoted(tmp_path, monkeypatch, write):
    facts = {"notes": (ADVICE,), "label": "All is well."}
    recording = Recording(single().tables, replace(single().manifest, **facts))
    name = {"save": "run.gpuviz", "report": "run.html"}[write]
    path = getattr(recording, write)(tmp_path / name)
    own = load(path).notes
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "other"))
    notes = load(path).notes
    again = load(load(path).save(tmp_path / "again.gpuviz")).notes

    assert own == ("All is well.", ADVICE)
    assert notes == again == ("The file says: All is well.", f"The file says: {ADVICE}")


def test_derived_tables_and_conclusions_are_read_on_first_use(tmp_path, monkeypatch):
    path = single().save(tmp_path / "run.gpuviz")
    names = []

    def noted(content, name, limit):
        names.append(name)
        return read_known(content, name, limit)

    monkeypatch.setattr("gpuviz.formats.gpuviz.read_known", noted)
    recording = load(path)
    first = set(names)
    names.clear()
    recording.findings()
    recording.findings()

    assert first == set(tables.schemas())
    assert names.count("derived/conclusions") == 1


@pytest.mark.parametrize("name", ["host_waits", "conclusions"])
@pytest.mark.parametrize("kept_bytes", [0, 10])
def test_a_stored_table_that_cannot_be_read_is_computed(tmp_path, name, kept_bytes):
    recording = load(RECORDINGS / "fft_filter.gpuviz")
    recording.findings()
    member = f"{DERIVED_FOLDER}{name}.arrow"
    path = edited(
        recording.save(tmp_path / "run.gpuviz"),
        lambda members: members.update({member: members[member][:kept_bytes]}),
    )
    with path.open("r+b") as file:
        seal(file)

    loaded = load(path)
    assert loaded.derived["host_waits"].equals(recording.derived["host_waits"])
    assert loaded.findings() == recording.findings()
