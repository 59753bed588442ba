"""Findings and what-if in files: kept if they belong to the recording, else recomputed."""

import random
import zipfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import gpuviz
from gpuviz.advice import conclusions as computed
from gpuviz.advice.findings import findings
from gpuviz.analysis.stored_conclusions import stored_conclusions
from gpuviz.data import conclusions as stored
from gpuviz.errors import FormatError
from gpuviz.formats.gpuviz import DERIVED_FOLDER
from gpuviz.recording import load
from tests.examples import examples
from tests.unit.formats.fuzzing import damaged
from tests.unit.recording.test_derived import edited, with_table
from tests.unit.report.recordings import SEGMENT, make_recording, small_program

SHIPPED = sorted((Path(gpuviz.__file__).parent / "commands" / "recordings").iterdir())
# Beside PyTorch's own allocator, no other settings can be tried.
OF_ONE_ALLOCATOR = [
    path for path in SHIPPED if path.stem not in {"one_pool_separate", "one_pool_watched"}
]
NAMES = ("findings", "what_if")
DAMAGED = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])


def shipped(name):
    return load(next(path for path in SHIPPED if path.stem == name))


@pytest.fixture
def uncomputed(monkeypatch):
    """Return what a test asked to compute: names of conclusions."""
    asked = []

    def recorded(name):
        original = getattr(computed, name)

        def compute(*arguments, **options):
            asked.append(name)
            return original(*arguments, **options)

        monkeypatch.setattr(computed, name, compute)

    for name in NAMES:
        recorded(name)
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
        assert loaded.table("findings").equals(recording.table("findings"))
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
    computed.known_findings.keep(recording, small)
    table = stored.marked({"findings": recording.table("findings")}, recording)

    assert small
    loaded = gpuviz.Recording(recording.tables, recording.manifest, table)
    assert stored_conclusions(loaded).keys() == {"findings"}
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
                each for each in NAMES if f"derived/{each}.arrow" in archive.namelist()
            }
    recording.what_if()
    recording.findings()

    assert members == {"cheap": {"findings"}, "long": set()}
    assert computed.for_file(load(recording.save(tmp_path / "known.gpuviz"))).keys() == {
        "findings",
        "hazards",
        "what_if",
    }
    assert uncomputed == ["findings", "what_if", "findings"]


def test_a_rule_that_fails_does_not_keep_a_recording_from_being_saved(tmp_path, monkeypatch):
    def fail(_):
        raise ZeroDivisionError

    recording = without_conclusions(shipped("monte_carlo"))
    monkeypatch.setattr(computed, "findings", fail)
    path = recording.save(tmp_path / "run.gpuviz")
    monkeypatch.undo()

    assert load(path).findings() == recording.findings()


def test_a_recorder_stores_no_conclusions(tmp_path):
    with gpuviz.record(tmp_path / "run.gpuviz", device=gpuviz.SimulatedGPU()):
        pass
    with zipfile.ZipFile(tmp_path / "run.gpuviz") as archive:
        assert {name for name in archive.namelist() if "findings" in name} == set()


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


def replaced(column, values):
    """Return a change of a table that replaces the first value of a column."""

    def change(table):
        rows = table.to_pylist()
        rows[0][column] = values
        return pa.Table.from_pylist(rows, table.schema)

    return change


LINE = {"site": "", "source": "", "amount": "1", "stack": 0}
EVIDENCE = {"table": "activities", "rows": [0], "begin": 0, "end": 1}
DOUBTFUL = {
    "no rule": replaced("rule", "R042"),
    "no certainty": replaced("certainty", "sure"),
    "an unknown device": replaced("device", 7),
    "a loss": replaced("saved_bytes", -1),
    "an unknown stack": replaced("lines", [LINE | {"stack": 1 << 30}]),
    "an unknown table": replaced("evidence", [EVIDENCE | {"table": "findings"}]),
    "too many rows": replaced("evidence", [EVIDENCE | {"rows": [1 << 30]}]),
    "rows before the first": replaced("evidence", [EVIDENCE | {"rows": [-1, 0]}]),
    "rows in another order": replaced("evidence", [EVIDENCE | {"rows": [2, 1]}]),
    "a window that ends first": replaced("evidence", [EVIDENCE | {"begin": 2}]),
    "two selections": replaced("evidence", [EVIDENCE, EVIDENCE]),
    "no title": replaced("title", None),
    "no amount": replaced("lines", [LINE | {"amount": None}]),
    "a missing line": replaced("lines", [None]),
    "another title": replaced("title", "All is well."),
    "a huge title": replaced("title", "x" * (17 << 20)),
    "other columns": lambda table: table.drop_columns(["device"]),
    "no mark": lambda table: table.replace_schema_metadata({}),
    "no rows": lambda table: table.slice(0, 0),
}


def with_checksum(change):
    """Return a change of a table after which its own checksum is right."""

    def apply(table):
        changed = change(table)
        mark = (changed.schema.metadata or {}).get(stored._MARK, b"")
        if mark and changed.num_rows:
            mark = mark.rpartition(b"-")[0] + b"-" + stored._checksum(changed)
            changed = changed.replace_schema_metadata({stored._MARK: mark})
        return changed

    return apply


def test_the_test_of_doubtful_findings_fails_without_a_doubt(tmp_path):
    recording = shipped("monte_carlo")
    change = with_checksum(replaced("title", "All is well."))
    path = edited(recording.save(tmp_path / "run.gpuviz"), with_table("findings", change))

    assert load(path).findings()[0].title == "All is well."


@pytest.mark.parametrize("name", DOUBTFUL)
def test_doubtful_findings_are_computed_again(name, tmp_path):
    recording = shipped("monte_carlo")
    change = DOUBTFUL[name]
    if name != "another title":
        change = with_checksum(change)
    path = edited(recording.save(tmp_path / "run.gpuviz"), with_table("findings", change))

    assert load(path).findings() == recording.findings()


def test_findings_of_another_version_or_recording_are_computed_again(tmp_path, monkeypatch):
    recording, other = shipped("monte_carlo"), shipped("fft_filter")
    path = recording.save(tmp_path / "run.gpuviz")
    with zipfile.ZipFile(other.save(tmp_path / "other.gpuviz")) as archive:
        foreign = archive.read(f"{DERIVED_FOLDER}findings.arrow")
    stale = edited(
        recording.save(tmp_path / "stale.gpuviz"),
        lambda members: members.update({f"{DERIVED_FOLDER}findings.arrow": foreign}),
    )
    found = load(stale).findings()
    monkeypatch.setattr(stored, "CONCLUSIONS_VERSION", stored.CONCLUSIONS_VERSION + 1)
    monkeypatch.setattr(computed, "findings", lambda _: ())

    assert found == recording.findings()
    assert load(path).findings() == ()


@DAMAGED
@given(seed=st.integers(0, 1 << 32))
def test_damaged_conclusions_are_refused_or_computed_again(seed, tmp_path_factory):
    source = random.Random(seed)
    folder = tmp_path_factory.mktemp("damaged")
    recording = shipped("monte_carlo")
    name = source.choice(NAMES)
    recording.what_if()
    member = f"{DERIVED_FOLDER}{name}.arrow"
    path = edited(
        recording.save(folder / "run.gpuviz"),
        lambda members: members.update({member: damaged(members[member], source)}),
    )
    loaded = loaded_or_refused(path)
    if isinstance(loaded, FormatError):
        assert loaded.member == member
    else:
        assert loaded.findings() == recording.findings()
        assert loaded.what_if().equals(recording.what_if())


def loaded_or_refused(path):
    try:
        return load(path)
    except FormatError as error:
        return error


@pytest.mark.parametrize(
    ("column", "row", "value"),
    [
        ("number", 3, 7),
        ("end", 3, 10**15),
        ("start", 5, 0),
        ("duration_ns", 2, 1),
        ("peak_bytes", 0, -1),
        ("device", 0, 9),
        ("name", 0, None),
    ],
)
def test_impossible_iterations_of_a_file_are_computed_again(column, row, value):
    recording = shipped("image_pipeline")
    expected = recording.iterations()
    table = recording.table("iterations")
    values = table[column].to_pylist()
    values[row] = value
    place = table.schema.get_field_index(column)
    changed = table.set_column(
        place, table.schema.field(column), pa.array(values, table[column].type)
    )
    marked = stored.marked({"iterations": changed}, recording)

    loaded = gpuviz.Recording(recording.tables, recording.manifest, marked)

    assert stored_conclusions(loaded) == {}
    assert loaded.iterations().equals(expected)
