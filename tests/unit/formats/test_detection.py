"""Formats of files and folders are detected by their content."""

import pytest

from gpuviz.data.manifest import Manifest
from gpuviz.errors import FormatError
from gpuviz.formats.detection import FORMATS, detect
from gpuviz.formats.part import PartWriter
from gpuviz.recording import load
from tests.unit.formats.plain_snapshots import snapshot_bytes
from tests.unit.report.recordings import make_recording


@pytest.fixture
def paths(tmp_path):
    """Return a file of each format, under a meaningless name."""
    recording = make_recording()
    log = tmp_path / "log"
    log.write_text("\ufeffthread,time,action,pointer,size,stream\n")
    pickled = tmp_path / "pickled"
    pickled.write_bytes(snapshot_bytes("oom"))
    part = PartWriter(tmp_path / "growing", Manifest())
    part.flush()
    return {
        "gpuviz": recording.save(tmp_path / "saved"),
        "html": recording.report(tmp_path / "page"),
        "rmm_csv": log,
        "torch_snapshot": pickled,
        "part": part.directory,
        "arrow_directory": recording.export(tmp_path / "exported", "arrow"),
    }


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_detected_by_its_content(name, paths):
    assert detect(paths[name]) == name


@pytest.mark.parametrize("name", FORMATS)
def test_load_reads_each(name, paths):
    recording = load(paths[name])

    assert recording.manifest.version == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80",
        b"\x80\x01.",
        b"\x80\x06.",
        b"Thread,Time",
        b"{}",
        b"\x7fELF",
        b"I1\n.",
    ],
)
def test_anything_else_is_refused_by_name_with_what_is_read(content, tmp_path):
    path = tmp_path / "run.gpuviz"
    path.write_bytes(content)

    with pytest.raises(FormatError, match=r"run\.gpuviz: not a gpuviz recording; expected a \.gpu"):
        detect(path)


def test_a_folder_without_a_manifest_is_refused(tmp_path):
    with pytest.raises(FormatError, match=r"manifest\.json: missing; expected"):
        load(tmp_path)


def test_a_folder_of_recordings_is_refused_with_what_to_do(tmp_path):
    (tmp_path / "1.gpuviz").touch()

    with pytest.raises(FormatError, match=rf"a folder of recordings; .* gpuviz merge {tmp_path}"):
        load(tmp_path)


def test_a_path_where_nothing_is_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
