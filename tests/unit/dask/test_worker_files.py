"""Recordings in the scratch folder of a worker, where other users may put anything."""

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, example, given
from hypothesis import strategies as st

from gpuviz.dask import worker_files
from gpuviz.dask.transfer import _file_name, _free_names
from gpuviz.dask.worker_files import Entry, Member, RecordingLock
from gpuviz.errors import RecordingError
from tests.examples import examples

RUN = "0123abcd"
NAME = "0@20261124T120000.000000.gpuviz"
EXAMPLES = examples(100, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.fixture
def worker(tmp_path):
    return SimpleNamespace(local_directory=str(tmp_path / "scratch" / "worker"), name="0")


@pytest.fixture
def folder(worker):
    folder = worker_files.run_folder(worker, RUN)
    folder.mkdir(parents=True)
    return folder


def members(worker, name=NAME):
    return asyncio.run(worker_files.members(Entry(RUN, name), worker))


def read(worker, member=""):
    return asyncio.run(worker_files.read_piece(Entry(RUN, NAME), member, 0, 100, worker))


def as_fifo(path):
    os.mkfifo(path)


def as_link(path):
    (path.parent.parent / "secret").write_text("secret")
    path.symlink_to("../secret")


def as_loop(path):
    path.symlink_to(path.name)


NOT_PLAIN = pytest.mark.parametrize("make", [as_fifo, as_link, as_loop])


@NOT_PLAIN
def test_what_is_no_plain_file_is_no_recording_of_a_worker(make, worker, folder):
    (folder / NAME).write_text("a recording")
    make(folder / f"1{NAME}")
    make(folder / f"2{NAME}.part")

    assert worker_files.ended(None, worker) == [Entry(RUN, NAME)]


@NOT_PLAIN
def test_what_is_no_plain_file_is_never_read(make, worker, folder):
    make(folder / NAME)
    with pytest.raises(RecordingError, match="is not a plain file"):
        read(worker)
    (folder / NAME).unlink()

    (folder / f"{NAME}.part").mkdir()
    make(folder / f"{NAME}.part" / "frames.arrow")
    with pytest.raises(RecordingError, match=r"frames\.arrow is not a plain file"):
        members(worker)
    with pytest.raises(RecordingError, match=r"frames\.arrow is not a plain file"):
        read(worker, "frames.arrow")


@NOT_PLAIN
def test_a_lock_that_is_no_plain_file_locks_nothing(make, worker, folder):
    (folder / NAME).write_text("a recording")
    make(folder / f"{NAME}.lock")

    assert worker_files.ended(None, worker) == [Entry(RUN, NAME)]
    with pytest.raises(FileExistsError):
        RecordingLock(folder / NAME)


def test_the_folder_of_another_user_that_is_a_link_is_not_looked_into(worker, folder, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / NAME).write_text("a recording")
    (folder.parent / "linked").symlink_to(tmp_path / "elsewhere")

    assert worker_files.ended(None, worker) == []


def test_a_recording_is_listed_once_its_lock_is_released(worker, folder):
    (folder / NAME).write_text("a recording")
    lock = RecordingLock(folder / NAME)
    during = worker_files.ended(RUN, worker)
    lock.release()

    assert during == []
    assert worker_files.ended(RUN, worker) == [Entry(RUN, NAME)]


@EXAMPLES
@given(name=st.text(st.characters(), min_size=1, max_size=20))
@example(name="../../evil")
@example(name=".")
@example(name="..")
@example(name=".hidden")
@example(name="/etc/passwd")
@example(name="a\0b")
@example(name="\ud800")
def test_a_worker_of_any_name_is_listed_and_fetched_into_the_folder(name, worker, folder):
    worker.name = name
    path = worker_files.new_path(folder, worker)
    path.write_text("a recording")

    (entry,) = worker_files.ended(None, worker)
    path.unlink()

    assert entry.is_plain
    assert path.parent == folder
    (target,) = _free_names(Path("run"), [entry]).values()
    assert target.parent == Path("run")
    assert not target.name.startswith(".")


@pytest.mark.parametrize("name", ["..", ".", "", "../evil", "/etc/passwd", ".bashrc", "a\0b"])
def test_a_worker_cannot_name_a_file_elsewhere(name):
    assert not Entry(RUN, name).is_plain
    assert not Entry(name, NAME).is_plain
    with pytest.raises(RecordingError, match="is not a file name"):
        _file_name(Member(name, 1, ""))
