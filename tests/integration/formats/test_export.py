"""``Recording.export``: choice of the format, and failures to write."""

from pathlib import Path

import pytest

import gpuviz
from gpuviz import _core
from gpuviz.errors import RecordingExistsError
from gpuviz.exports import writers as exports
from gpuviz.exports.trace import build_trace
from gpuviz.formats import arrow_directory
from tests.integration.formats.trace_processor import answers
from tests.unit.formats.any_recording import empty

RECORDED = Path(gpuviz.__file__).parent / "commands" / "recordings" / "fft_filter.gpuviz"
OWN = ("perfetto", "chrome_trace", "arrow", "parquet")


@pytest.mark.parametrize(
    ("name", "beginning"),
    [("run.pftrace", b"\n"), ("run.perfetto-trace", b"\n"), ("run.json", b'{"displayTimeUnit"')],
)
def test_the_suffix_chooses_the_format_of_a_file(name, beginning, tmp_path):
    path = empty().export(tmp_path / name)

    assert path == tmp_path / name
    assert path.read_bytes().startswith(beginning)


@pytest.mark.parametrize("kind", ["arrow", "parquet"])
def test_the_suffix_chooses_the_format_of_a_folder(kind, tmp_path):
    path = empty().export(str(tmp_path / f"run.{kind}"))

    assert arrow_directory.layout(path) == kind


def test_the_format_may_be_named(tmp_path):
    path = empty().export(tmp_path / "run.json", "perfetto")

    assert answers(path.read_bytes(), "select count(*) from slice") == [[(0,)]]


@pytest.mark.parametrize("name", ["run.csv", "run", "run.gpuviz"])
def test_an_unknown_suffix_is_an_error_that_lists_the_formats(name, tmp_path):
    with pytest.raises(ValueError, match="is not that of a format") as caught:
        empty().export(tmp_path / name)

    assert [each for each in exports.FORMATS if f'"{each}"' not in str(caught.value)] == []
    assert names_in(tmp_path) == []


def test_an_unknown_format_is_an_error_that_lists_the_formats(tmp_path):
    with pytest.raises(
        ValueError, match=r"unknown format 'nsys'; choose one of \"perfetto\" \(\.pftrace"
    ):
        empty().export(tmp_path / "run.json", "nsys")


@pytest.mark.parametrize("format_", OWN)
def test_what_is_there_stays_unless_it_may_be_overwritten(format_, tmp_path):
    path = tmp_path / "run"
    path.write_text("mine")

    with pytest.raises(RecordingExistsError, match="overwrite=True"):
        empty().export(path, format_)

    assert path.read_text() == "mine"
    assert empty().export(path, format_, overwrite=True) == path
    assert path.is_dir() or path.read_bytes() != b"mine"
    assert names_in(tmp_path) == ["run"]


@pytest.mark.parametrize("format_", OWN)
def test_a_full_disk_leaves_nothing_but_what_was_there(format_, tmp_path, monkeypatch):
    recording = gpuviz.load(RECORDED)
    path = recording.export(tmp_path / "run", format_)
    before = content_of(path)
    fail_to_write(monkeypatch, OSError(28, "No space left on device"))

    with pytest.raises(OSError, match="No space left"):
        recording.export(path, format_, overwrite=True)

    assert content_of(path) == before
    assert names_in(tmp_path) == ["run"]


@pytest.mark.parametrize("format_", OWN)
def test_an_interrupt_leaves_nothing(format_, tmp_path, monkeypatch):
    fail_to_write(monkeypatch, KeyboardInterrupt())

    with pytest.raises(KeyboardInterrupt):
        gpuviz.load(RECORDED).export(tmp_path / "run", format_)

    assert names_in(tmp_path) == []


def fail_to_write(monkeypatch, error):
    """Make the writers of all formats fail in the middle of their content."""

    def fail(*_):
        raise error

    def write_half(*parts):
        parts[-1](b"half")
        raise error

    monkeypatch.setattr("gpuviz._core.write_perfetto_rows", write_half)
    monkeypatch.setattr("gpuviz._core.write_chrome_rows", write_half)
    monkeypatch.setattr("gpuviz.data.manifest.Manifest.to_json", fail)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def content_of(path):
    files = sorted(path.iterdir()) if path.is_dir() else [path]
    return {file.name: file.read_bytes() for file in files}


def test_what_the_sink_raises_ends_the_writing_with_its_own_error():
    class FullError(Exception):
        pass

    def full(_):
        raise FullError

    tables = [table.native() for table in build_trace(gpuviz.load(RECORDED)).tables]

    with pytest.raises(FullError):
        _core.write_perfetto_rows(tables, 1, 0, full)


def test_pieces_are_of_a_bounded_size():
    trace = build_trace(gpuviz.load(RECORDED.with_name("kmeans.gpuviz")))
    pieces = []
    _core.write_perfetto_rows([t.native() for t in trace.tables] * 4, 1, 0, pieces.append)

    assert len(pieces) > 2
    assert max(map(len, pieces)) < (1 << 20) + 4096
