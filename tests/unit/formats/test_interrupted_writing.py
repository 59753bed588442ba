"""Files and folders that are replaced, interrupted at any line: old or new is always there."""

import fcntl
import os

import pytest

from gpuviz.errors import RecordingExistsError
from gpuviz.formats import whole_folder
from gpuviz.formats.whole_file import write_whole
from gpuviz.formats.whole_folder import write_whole_folder
from tests.faults import Fault

# Between the end of a block and the close of its file, Python leaves that to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


def write_file(path, text, *, overwrite=True):
    write_whole(path, lambda file: file.write(text.encode()), overwrite=overwrite)


def write_folder(path, text, *, overwrite=True):
    def write(folder):
        (folder / "one").write_text(text)
        (folder / "two").write_text(text)

    write_whole_folder(path, write, overwrite=overwrite, is_replaceable=lambda _: True)


def contents(path):
    if path.is_dir():
        return {file.read_text() for file in path.iterdir()}
    return {path.read_text()}


def without_exchange(monkeypatch):
    monkeypatch.setattr(whole_folder, "_exchange", lambda _one, _other: False)


@pytest.fixture(params=["file", "folder", "folder without exchange"])
def write(request, monkeypatch):
    if request.param == "folder without exchange":
        without_exchange(monkeypatch)
    return write_file if request.param == "file" else write_folder


def test_old_or_new_is_there_whenever_it_is_interrupted(write, tmp_path):
    path = tmp_path / "run"
    fault = Fault(folder="/gpuviz/formats/")
    for line in fault.lines():
        write(path, "old")
        with fault.armed(line):
            write(path, "new")

        assert contents(path) in ({"old"}, {"new"}), fault.place
    assert line > 20
    write(path, "last")
    assert [each.name for each in tmp_path.iterdir()] == ["run"]
    assert contents(path) == {"last"}


def test_a_new_path_is_whole_or_free_whenever_it_is_interrupted(write, tmp_path):
    fault = Fault(folder="/gpuviz/formats/")
    for line in fault.lines():
        path = tmp_path / str(line) / "run"
        path.parent.mkdir()
        with fault.armed(line):
            write(path, "new", overwrite=False)

        assert not path.exists() or contents(path) == {"new"}, fault.place
        write(path, "last")
        assert [each.name for each in path.parent.iterdir()] == ["run"], fault.place


def test_what_a_killed_writer_left_is_removed_and_what_a_living_one_writes_is_kept(write, tmp_path):
    left = tmp_path / ".run.0123456789abcdef.tmp"
    living = tmp_path / ".run.fedcba9876543210.tmp"
    others = [tmp_path / name for name in (".run.tmp", ".other.0123456789abcdef.tmp", "note")]
    for path in (left, living, *others):
        path.write_text("kept")
    with living.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        write(tmp_path / "run", "new")

    kept = {"run", living.name, *(path.name for path in others)}
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_a_living_writer_holds_its_temporary_file(tmp_path):
    def write_again(_):
        write_file(tmp_path / "run", "inner")

    write_whole(tmp_path / "run", write_again, overwrite=True)
    write_whole_folder(
        tmp_path / "folder",
        lambda _: write_folder(tmp_path / "folder", "inner"),
        overwrite=True,
        is_replaceable=lambda _: True,
    )

    assert contents(tmp_path / "run") == {""}
    assert contents(tmp_path / "folder") == set()


def test_a_folder_whose_replacement_was_killed_halfway_comes_back(tmp_path):
    write_folder(tmp_path / "run", "old")
    (tmp_path / "run").rename(tmp_path / ".run.0123456789abcdef.old")

    with pytest.raises(RecordingExistsError):
        write_folder(tmp_path / "run", "new", overwrite=False)

    assert contents(tmp_path / "run") == {"old"}


def test_a_failed_exchange_keeps_the_old_folder(tmp_path, monkeypatch):
    without_exchange(monkeypatch)
    write_folder(tmp_path / "run", "old")
    rename = os.rename

    def rename_once(source, target, **options):
        if str(target).endswith("run") and str(source).endswith(".tmp"):
            raise OSError(5, "Input/output error")
        rename(source, target, **options)

    monkeypatch.setattr(os, "rename", rename_once)

    with pytest.raises((OSError, RecordingExistsError)):
        write_folder(tmp_path / "run", "new")

    assert contents(tmp_path / "run") == {"old"}
    assert [path.name for path in tmp_path.iterdir()] == ["run"]
