"""The viewer's reader of torch's snapshots, in WebAssembly, against `gpuviz.load`."""

import json
import pickle
import random
import re
import subprocess
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.data import derived, tables
from gpuviz.errors import FormatError
from gpuviz.exports import torch_export
from gpuviz.formats import torch_snapshot
from tests.unit.formats.any_recording import any_recording
from tests.unit.formats.damaged_files import torch_file
from tests.unit.formats.plain_snapshots import DATA, GOLDENS, SNAPSHOTS, golden_snapshot

EXTENSION = Path(__file__).parents[3] / "extension"
PROGRAM = EXTENSION / "testing" / "snapshot_columns.ts"
MODULE = Path(gpuviz.__file__).parent / "static" / "snapshot_reader.wasm"
SCHEMAS = tables.schemas() | derived.schemas()
# Of the manifest of a file, which a recording in memory lacks.
OF_FILES = ("tables", "derived_version")
GOLDEN = sorted(path.name.partition(".")[0] for path in GOLDENS.glob("*.json.xz"))


def kind_of(kind):
    """Return how the browser reads a column of an Arrow type."""
    if pa.types.is_list(kind):
        return "lists"
    return "numbers" if pa.types.is_integer(kind) else "texts"


KINDS = {
    name: {field.name: kind_of(field.type) for field in schema} for name, schema in SCHEMAS.items()
}


def in_browser(paths):
    """Return what the viewer reads from each file: its manifest and columns, or an error."""
    run = subprocess.run(
        ["node", PROGRAM, MODULE, *paths],  # noqa: S607 - of the package that npm comes from
        input=json.dumps(KINDS),
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
    )
    return [json.loads(line, parse_int=float) for line in run.stdout.splitlines()]


def numbers(values):
    """Return integers as the browser has them, whose numbers have 53 bits."""
    return [float(each - 2**64 if each >= 2**63 else each) for each in values]


def columns(recording):
    """Return all columns of a recording's tables, and of those derived from them."""
    known = {**recording.tables, **recording.derived}
    return {
        name: {
            column: numbers(known[name][column].to_pylist())
            if kind == "numbers"
            else known[name][column].to_pylist()
            for column, kind in kinds.items()
        }
        for name, kinds in KINDS.items()
    }


def equal(read, path):
    """Compare the columns and the manifest of a file with those that `gpuviz.load` has."""
    recording = gpuviz.load(path)
    manifest = json.loads(recording.manifest.to_json(), parse_int=float)
    found = {name: value for name, value in read["manifest"].items() if name not in OF_FILES}
    assert found == {name: manifest[name] for name in found}
    expected = columns(recording)
    for name in KINDS:
        assert read["columns"][name] == expected[name], name


def refusal(path):
    """Return why a file cannot be loaded; empty if it can."""
    try:
        torch_snapshot.read(path)
    except FormatError as error:
        return str(error)
    return ""


def test_real_snapshots_have_the_columns_that_load_gives_them():
    paths = [DATA / f"{name}.pickle" for name in SNAPSHOTS]

    for read, path in zip(in_browser(paths), paths, strict=True):
        equal(read, path)


def test_snapshots_of_random_programs_have_the_columns_that_load_gives_them(tmp_path):
    paths = []
    for number, name in enumerate(GOLDEN):
        values, _ = golden_snapshot(name, 150 * (number % 2))
        paths.append(tmp_path / f"{name}.pickle")
        paths[-1].write_bytes(pickle.dumps(values, 2 + number % 4))

    for read, path in zip(in_browser(paths), paths, strict=True):
        equal(read, path)


@given(st.lists(any_recording(), min_size=4, max_size=4))
def test_snapshots_of_any_recording_have_the_columns_that_load_gives_them(
    tmp_path_factory, recordings
):
    folder = tmp_path_factory.mktemp("snapshots")
    paths = [
        torch_export.write(recording, folder / f"{number}.pickle")
        for number, recording in enumerate(recordings)
    ]

    for read, path in zip(in_browser(paths), paths, strict=True):
        equal(read, path)


def test_shipped_recordings_of_several_devices_survive_as_snapshots(tmp_path):
    folder = Path(__file__).parents[2] / "unit" / "two_gpus" / "data"
    paths = [
        gpuviz.load(path).export(tmp_path / f"{path.stem}.pickle")
        for path in sorted(folder.glob("*.gpuviz"))[:4]
    ]

    for read, path in zip(in_browser(paths), paths, strict=True):
        equal(read, path)


def test_damaged_snapshots_are_refused_for_the_same_reason(tmp_path):
    source = random.Random(3)
    paths = []
    for number in range(60):
        folder = tmp_path / str(number)
        folder.mkdir()
        path = torch_file(folder, source)
        # Damage of the head makes it another kind of file.
        if torch_snapshot.is_pickle(path.read_bytes()[:2]):
            paths.append(path)

    refused = 0
    for read, path in zip(in_browser(paths), paths, strict=True):
        reason = refusal(path)
        if not reason:
            equal(read, path)
        # Any recording is refused for a table with values that no machine has, by `gpuviz.load`.
        elif "table " not in reason:
            assert read["error"].rstrip(".") in reason
            refused += 1
    assert 10 < refused < len(paths)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"\x80\x04](" + b"}" * 60 + b"e.", "segments[0]"),
        (b"\x80\x04c__builtin__\neval\n.", "GLOBAL could run code and is refused"),
        (b"\x80\x04\x95" + b"\xff" * 8 + b".", "byte 2: truncated"),
        (b"\x80\x04" + b"]" * 100_000 + b".", "the pickle ends with 100000 values"),
    ],
)
def test_a_malicious_snapshot_is_an_error_that_names_the_part(content, problem, tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(content)

    (read,) = in_browser([path])

    assert problem in read["error"]


def test_values_that_need_more_memory_than_the_page_has_are_refused(tmp_path):
    path = tmp_path / "snapshot.pickle"
    # Each byte is a list, which takes 16 bytes and a place on the stack.
    path.write_bytes(b"\x80\x04(" + b"]" * 100_000_000 + b"l.")

    (read,) = in_browser([path])

    assert re.search(r"needs? more (memory )?than (the 4 GiB|2048 MiB)", read["error"])


def test_a_file_that_is_too_large_is_not_read(tmp_path):
    path = tmp_path / "snapshot.pickle"
    with path.open("wb") as file:
        file.write(b"\x80\x04")
        file.truncate((512 << 20) + 1)

    (read,) = in_browser([path])

    assert read["error"].startswith("the snapshot has 513 MiB, and this page reads at most 512 MiB")
