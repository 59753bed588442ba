"""The viewer's reader of torch's snapshots, in WebAssembly, beside `gpuviz.load`."""

import json
import os
import subprocess
from pathlib import Path

import pyarrow as pa

import gpuviz
from gpuviz.data import derived, tables
from gpuviz.errors import FormatError
from gpuviz.formats import torch_snapshot
from tests.unit.formats.damaged_files import torch_file
from tests.unit.formats.false_snapshots import snapshot_file

EXTENSION = Path(__file__).parents[3] / "extension"
PROGRAM = EXTENSION / "testing" / "snapshot_columns.ts"
MODULE = Path(gpuviz.__file__).parent / "static" / "snapshot_reader.wasm"
SCHEMAS = tables.schemas() | derived.schemas()
# Of the manifest of a file, which a recording in memory lacks.
OF_FILES = ("tables", "derived_version")
# Node has another allocator than the one of the sanitizers that `scripts/fuzz` puts before it.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
# A module reserves more addresses with it than `tests.fuzz` lets a process have.
OPTION = "--disable-wasm-trap-handler"


def kind_of(kind):
    """Return how the browser reads a column of an Arrow type."""
    if pa.types.is_list(kind):
        return "lists"
    return "numbers" if pa.types.is_integer(kind) else "texts"


COLUMNS = {
    name: {field.name: kind_of(field.type) for field in schema} for name, schema in SCHEMAS.items()
}


def in_browser(paths):
    """Return what the viewer reads from each file: its manifest and columns, or an error."""
    run = subprocess.run(
        ["node", OPTION, PROGRAM, MODULE, *paths],  # noqa: S607 - of the package that npm comes from
        input=json.dumps(COLUMNS),
        capture_output=True,
        check=True,
        text=True,
        timeout=120,
        env=ENVIRONMENT,
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
        for name, kinds in COLUMNS.items()
    }


def equal(read, path):
    """Compare the columns and the manifest of a file with those that `gpuviz.load` has."""
    recording = gpuviz.load(path)
    manifest = json.loads(recording.manifest.to_json(), parse_int=float)
    found = {name: value for name, value in read["manifest"].items() if name not in OF_FILES}
    assert found == {name: manifest[name] for name in found}
    expected = columns(recording)
    for name in COLUMNS:
        assert read["columns"][name] == expected[name], name


def refusal(path):
    """Return why a file cannot be loaded; empty if it can."""
    try:
        torch_snapshot.read(path)
    except FormatError as error:
        return str(error)
    return ""


def agree(read, path):
    """Compare what the viewer reads with what `gpuviz.load` does; return whether both accept it."""
    reason = refusal(path)
    if not reason:
        assert "error" not in read, read["error"]
        equal(read, path)
        return True
    # Any recording is refused for a table with values that no machine has, by `gpuviz.load`.
    if "table " not in reason:
        assert read.get("error", "shown").rstrip(".") in reason, reason
    return False


def snapshot_in(make):
    """Return the maker of a file that is no other kind of file because of its damaged head."""

    def made(folder, source):
        while not torch_snapshot.is_pickle((path := make(folder, source)).read_bytes()[:2]):
            pass
        return path

    return made


KINDS = {"viewer": snapshot_in(torch_file), "viewer_values": snapshot_file}


def outcome(path):
    """Return whether the viewer and `gpuviz.load` accept a file, or how they differ."""
    (read,) = in_browser([path])
    return agree(read, path)
