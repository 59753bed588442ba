"""Manifests with anything in them: refused by name, or everything works on the recording."""

import io
import json
import zipfile
from contextlib import suppress
from dataclasses import fields

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

import gpuviz
from gpuviz.analysis.derived_tables import derived_for_file
from gpuviz.commands.info import facts_of
from gpuviz.data.manifest import Manifest
from gpuviz.errors import FormatError, GpuvizError
from gpuviz.formats.arrow_directory import write_arrow
from gpuviz.formats.gpuviz import write_archive
from gpuviz.formats.part import PartWriter
from gpuviz.recording import load
from tests.examples import examples
from tests.unit.report.recordings import make_recording

EXAMPLES = examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
TEXTS = st.text(max_size=6) | st.sampled_from(["\ud800", "0:1", "0", "-1", "1:x", "٣", "x" * 300])
NUMBERS = st.integers() | st.sampled_from([0, 1, 2**31, 2**63 - 1, 2**63, 2**64, -1, 10**400])
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.floats() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
LINK = (
    *("other", "access", "native_atomics", "performance_rank", "nvlinks", "nvlink_version"),
    "pcie",
)
PLAUSIBLE = {
    "memory_stats": st.dictionaries(TEXTS, st.dictionaries(TEXTS, NUMBERS, max_size=3), max_size=3),
    "failures": st.dictionaries(TEXTS, st.dictionaries(TEXTS, NUMBERS, max_size=3), max_size=3),
    "tables": st.dictionaries(TEXTS, NUMBERS, max_size=3),
    "device_links": st.dictionaries(
        st.sampled_from(["0", "1", "٣"]),
        st.lists(st.fixed_dictionaries(dict.fromkeys(LINK, st.integers(-2, 60))), max_size=3),
        max_size=3,
    ),
    "libraries": st.dictionaries(TEXTS | st.sampled_from(["torch", "jax"]), TEXTS, max_size=3),
    "notes": st.lists(TEXTS, max_size=3),
    "program": st.lists(TEXTS, max_size=3),
}
CHANGES = st.one_of(
    st.tuples(st.sampled_from([each.name for each in fields(Manifest)]) | TEXTS, JSON),
    st.tuples(st.just("layout"), JSON),
    *(st.tuples(st.just(name), values) for name, values in PLAUSIBLE.items()),
)


@pytest.fixture(scope="module")
def members():
    buffer = io.BytesIO()
    recording = make_recording()
    write_archive(buffer, recording, derived_for_file(recording))
    with zipfile.ZipFile(buffer) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def changed(text, changes):
    values = json.loads(text) | dict(changes)
    return json.dumps(values).encode()


def loaded_or_refused(path):
    try:
        return load(path), None
    except FormatError as error:
        return None, error


def works_or_is_refused(path, folder):
    recording, error = loaded_or_refused(path)
    if error is not None:
        assert str(error).startswith(str(path))
        return
    repr(recording)
    recording.out_of_memory()
    assert json.dumps(facts_of(recording))
    for write in (recording.save, recording.report):
        with suppress(GpuvizError):
            write(folder / "again", overwrite=True)


@EXAMPLES
@given(changes=st.lists(CHANGES, min_size=1, max_size=3))
def test_any_manifest_of_a_file(members, tmp_path, changes):
    path = tmp_path / "run.gpuviz"
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            is_manifest = name == "manifest.json"
            archive.writestr(name, changed(content, changes) if is_manifest else content)

    works_or_is_refused(path, tmp_path)


@EXAMPLES
@given(changes=st.lists(CHANGES, min_size=1, max_size=3), kind=st.sampled_from(["part", "arrow"]))
def test_any_manifest_of_a_folder(tmp_path_factory, changes, kind):
    tmp_path = tmp_path_factory.mktemp("folder")
    if kind == "part":
        folder = PartWriter(tmp_path / "run.gpuviz", Manifest(start_unix_ns=1)).directory
    else:
        folder = write_arrow(make_recording(), tmp_path / "run")
    path = folder / "manifest.json"
    path.write_bytes(changed(path.read_bytes(), changes))

    works_or_is_refused(folder, tmp_path)


@EXAMPLES
@given(value=JSON)
def test_any_json_in_place_of_a_manifest(tmp_path, value):
    (tmp_path / "manifest.json").write_text(json.dumps(value))
    (tmp_path / "last_flush.json").write_text(json.dumps(value))

    works_or_is_refused(tmp_path, tmp_path)


@pytest.mark.parametrize("layout", [{}, [], None, 1, True, {"arrow": 1}])
def test_a_layout_that_is_no_text_is_none(tmp_path, layout):
    (tmp_path / "manifest.json").write_text(json.dumps({"layout": layout}))

    with pytest.raises(FormatError, match=r'manifest\.json: expected "format": "gpuviz"'):
        load(tmp_path)


@pytest.mark.parametrize(
    ("path", "problem"), [("x" * 300, "the path is too long"), ("a\0b", "not a path")]
)
def test_a_path_that_cannot_be_is_named(path, problem):
    with pytest.raises(FormatError, match=problem) as caught:
        load(path)

    assert caught.value.path == path


@pytest.mark.parametrize("length", [240, 250])
def test_a_name_almost_as_long_as_file_systems_allow_can_be_written(tmp_path, length):
    recording = make_recording()

    path = recording.save(tmp_path / ("x" * length))
    folder = write_arrow(recording, tmp_path / ("y" * length))

    assert load(path).tables == load(folder).tables == recording.tables


FREES = dict.fromkeys(
    ("allocated", "freed", "used", "own_stream", "stream", "frees", "bytes", "byte_seconds"), 1
)
WRITES = dict.fromkeys(
    ("allocated", "freed", "reused", "address", "stream", "size", "offset"), 2**32 - 1
)


@pytest.mark.parametrize(
    ("name", "row"),
    [
        *(("delayed_frees", FREES | {key: 1.5}) for key in FREES if key != "byte_seconds"),
        ("delayed_frees", FREES | {"byte_seconds": float("nan")}),
        ("delayed_frees", FREES | {"allocated": 2**32}),
        ("delayed_frees", FREES | {"stream": 2**64}),
        ("delayed_frees", FREES | {"bytes": 2**62}),
        ("writes_after_free", WRITES | {"address": -1}),
        ("writes_after_free", WRITES | {"size": True}),
    ],
)
def test_a_row_by_device_that_cannot_be_is_refused(name, row):
    valid = {"delayed_frees": {"0": [FREES]}, "writes_after_free": {"0": [WRITES]}}
    text = Manifest(**(valid | {name: {"0": [row]}})).to_json()

    assert Manifest.from_json(Manifest(**valid).to_json()) == Manifest(**valid)
    with pytest.raises(ValueError, match=f'expected "{name}" to give objects with numbers'):
        Manifest.from_json(text)


@pytest.mark.parametrize("number", [2**62, -1])
def test_a_time_that_cannot_be_is_refused(number):
    with pytest.raises(ValueError, match=r'"duration_ns" to be at least 0 and below 2\*\*62'):
        Manifest.from_json(Manifest(duration_ns=number).to_json())


def test_a_command_line_that_is_no_unicode_is_compared():
    changed = gpuviz.diff(
        make_recording(program=("\udcff",)), make_recording()
    ).settings.to_pylist()

    assert {row["name"]: row["before"] for row in changed}["Program"].startswith("\\udcff")


def test_a_note_that_is_no_unicode_is_shown():
    shown = make_recording(notes=("half a letter \ud800",), simulated=True)._repr_html_()

    assert "half a letter \\ud800" in shown
    shown.encode()
