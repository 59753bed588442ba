"""Sparse files, links, and paths that are no files."""

import os
import socket

import pytest

from gpuviz.data.manifest import Manifest
from gpuviz.errors import FormatError
from gpuviz.formats.arrow_directory import write_arrow
from gpuviz.formats.part import PartWriter
from gpuviz.recording import load
from tests.unit.formats.refused_files import refused
from tests.unit.report.recordings import make_recording


def sparse(path, start=b"", size=100 << 30):
    path.write_bytes(start)
    os.truncate(path, size)
    return path


@pytest.mark.parametrize(
    "start",
    [
        b"PK\x03\x04",
        b"<!doctype html>",
        b"\x80\x04}(",
        b"Thread,Time,Action,Pointer,Size,Stream\n",
        b"",
    ],
)
def test_a_sparse_file_is_refused_at_once(tmp_path, start):
    path = sparse(tmp_path / "run.gpuviz", start)

    with pytest.raises(FormatError) as caught:
        load(path)

    assert str(caught.value).startswith(str(path))


def test_a_sparse_table_is_refused_at_once(tmp_path):
    directory = PartWriter(tmp_path / "run.gpuviz", Manifest()).directory
    sparse(directory / "memory_events.arrow")

    assert refused(directory) == ""


def test_what_is_no_file_is_refused_at_once(tmp_path):
    fifo, name = tmp_path / "fifo", tmp_path / "socket"
    os.mkfifo(fifo)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(name))
        for path, kind in ((fifo, "a FIFO"), (name, "a socket"), ("/dev/zero", "a character dev")):
            with pytest.raises(FormatError, match=f"^{path}: {kind}"):
                load(path)


@pytest.mark.parametrize("name", ["manifest.json", "last_flush.json", "memory_events.arrow"])
@pytest.mark.parametrize("kind", ["fifo", "link", "folder"])
def test_what_is_no_file_in_a_folder_is_refused_at_once(tmp_path, name, kind):
    directory = PartWriter(tmp_path / "run.gpuviz", Manifest()).directory
    path = directory / name
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        secret = tmp_path / "secret"
        secret.write_bytes(b'{"secret": 1}')
        path.symlink_to(secret)

    expected = {"fifo": "a FIFO", "link": "a link out of the folder", "folder": "a folder"}[kind]
    with pytest.raises(FormatError, match=f"{name}: {expected}"):
        load(directory)


def test_a_link_within_a_folder_is_followed(tmp_path):
    folder = write_arrow(make_recording(), tmp_path / "run")
    (folder / "memory_events.arrow").rename(folder / "events")
    (folder / "memory_events.arrow").symlink_to("events")
    (tmp_path / "linked").symlink_to(folder)

    assert load(tmp_path / "linked").tables == make_recording().tables
