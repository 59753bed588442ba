"""Damaged recordings: always one error that names the file and the part."""

import base64
import io
import os
import resource
import zipfile
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from gpuviz.data.manifest import VERSION
from gpuviz.data.tables import schemas
from gpuviz.errors import FormatError
from gpuviz.recording import Recording, load
from tests.examples import examples
from tests.unit.report.recordings import make_recording

EXAMPLES = examples(
    30,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def full_recording():
    """Return a recording with rows in every table."""
    recording = make_recording()
    samples = [{"time": 5, "device": 0, "used": 7}]
    memory = pa.Table.from_pylist(samples, schema=schemas()["device_memory"])
    return Recording(recording.tables | {"device_memory": memory}, recording.manifest)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the bytes of a saved recording."""
    return full_recording().save(tmp_path_factory.mktemp("whole") / "run.gpuviz").read_bytes()


def loads_equal_or_not_at_all(path):
    loaded, error = loaded_or_refused(path)
    if error is None:
        assert loaded.tables == full_recording().tables
    else:
        assert error.path.startswith(str(path))
        assert str(error).startswith(str(path))
        assert error.problem
    return loaded


def loaded_or_refused(path):
    try:
        return load(path), None
    except FormatError as error:
        return None, error


def members(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def archived(parts, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


@EXAMPLES
@given(data=st.data())
def test_a_truncated_file_is_refused(whole, tmp_path, data):
    size = data.draw(st.integers(0, len(whole) - 1))
    path = tmp_path / "run.gpuviz"
    path.write_bytes(whole[:size])

    assert loads_equal_or_not_at_all(path) is None


def test_a_file_that_lost_a_part_of_its_seal_is_refused(whole, tmp_path):
    path = tmp_path / "run.gpuviz"
    for lost in range(1, 70):
        path.write_bytes(whole[:-lost])

        assert loads_equal_or_not_at_all(path) is None


@EXAMPLES
@given(data=st.data())
def test_flipped_bits_are_found_or_do_not_matter(whole, tmp_path, data):
    damaged = bytearray(whole)
    for bit in data.draw(st.lists(st.integers(0, 8 * len(whole) - 1), min_size=1, max_size=4)):
        damaged[bit // 8] ^= 1 << bit % 8
    path = tmp_path / "run.gpuviz"
    path.write_bytes(damaged)

    loads_equal_or_not_at_all(path)


@EXAMPLES
@given(data=st.data())
def test_damage_behind_a_valid_checksum_never_raises_anything_else(whole, tmp_path, data):
    parts = members(whole)
    name = data.draw(st.sampled_from(sorted(parts)))
    damaged = bytearray(parts[name])
    for bit in data.draw(st.lists(st.integers(0, 8 * len(damaged) - 1), min_size=1, max_size=6)):
        damaged[bit // 8] ^= 1 << bit % 8
    path = archived(parts | {name: bytes(damaged)}, tmp_path / "run.gpuviz")

    loaded, error = loaded_or_refused(path)

    assert error is None or error.member
    for device in loaded.devices if loaded else ():
        assert loaded.memory_stats(device)["num_ooms"] >= 0


@pytest.mark.parametrize("other", sorted({*schemas()} - {"memory_events"}))
def test_swapped_members_are_refused(whole, tmp_path, other):
    parts = members(whole)
    first, second = "memory_events.arrow", f"{other}.arrow"
    swapped = parts | {first: parts[second], second: parts[first]}

    with pytest.raises(FormatError, match=r"run\.gpuviz: \w+\.arrow: "):
        load(archived(swapped, tmp_path / "run.gpuviz"))


@pytest.mark.parametrize("name", ["manifest.json", *(f"{name}.arrow" for name in schemas())])
def test_a_missing_member_is_named(whole, tmp_path, name):
    parts = {member: content for member, content in members(whole).items() if member != name}

    with pytest.raises(FormatError, match="missing") as caught:
        load(archived(parts, tmp_path / "run.gpuviz"))

    assert caught.value.member == name


@pytest.mark.parametrize(
    "content",
    [b"", b"P", b"PK", b"\x89PNG\r\n\x1a\n", b"x" * 5000, b"PK\x03\x04" + b"\0" * 500],
)
def test_a_foreign_file_is_refused(tmp_path, content):
    path = tmp_path / "run.gpuviz"
    path.write_bytes(content)

    assert loads_equal_or_not_at_all(path) is None


@pytest.mark.parametrize("parts", [{}, {"a.txt": b"1"}, {"manifest.json": b'{"format": "other"}'}])
def test_a_foreign_archive_is_refused(tmp_path, parts):
    assert loads_equal_or_not_at_all(archived(parts, tmp_path / "run.gpuviz")) is None


def test_a_newer_version_says_to_update(tmp_path):
    manifest = replace(full_recording().manifest, version=VERSION + 1)
    path = Recording(full_recording().tables, manifest).save(tmp_path / "run.gpuviz")

    with pytest.raises(FormatError, match=f"version {VERSION + 1}.*update gpuviz") as caught:
        load(path)

    assert caught.value.member == "manifest.json"


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b"\xff\xfe",
        b'{"format": "gpuviz"}',
        b'{"format": "gpuviz", "version": true}',
        b'{"format": "gpuviz", "version": 1, "duration_ns": "long"}',
        b'{"format": "gpuviz", "version": 1, "duration_ns": -1}',
        b'{"format": "gpuviz", "version": 1, "initial_events": 1000}',
        b'{"format": "gpuviz", "version": 1, "program": "a.py"}',
        b'{"format": "gpuviz", "version": 1, "tables": {"memory_events": "7"}}',
        b'{"format": "gpuviz", "version": 1, "tables": {"memory_events": 6}}',
        b'{"format": "gpuviz", "version": 1, "memory_stats": {"0": 1}}',
        b'{"format": "gpuviz", "version": 1, "memory_stats": []}',
        b"[" * 100_000,
    ],
)
def test_a_manifest_that_makes_no_sense_is_refused(whole, tmp_path, text):
    path = archived(members(whole) | {"manifest.json": text}, tmp_path / "run.gpuviz")

    with pytest.raises(FormatError, match=r"run\.gpuviz: \w+\.(json|arrow): "):
        load(path)


def declaring(whole, size):
    """Return an archive whose first table declares a wrong size."""
    parts = members(whole)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        archive.getinfo("memory_events.arrow").file_size = size
    return buffer.getvalue()


@pytest.mark.parametrize("size", [0, 1, 1 << 20, (1 << 32) - 2, 1 << 40, (1 << 63) - 1])
def test_a_declared_size_that_cannot_be_is_refused(whole, tmp_path, size):
    path = tmp_path / "run.gpuviz"
    path.write_bytes(declaring(whole, size))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    assert loads_equal_or_not_at_all(path) is None
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_members_that_share_their_bytes_are_refused(whole, tmp_path):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members(whole).items():
            archive.writestr(name, content)
        bomb = os.urandom(20_000)
        archive.writestr("bomb", bomb)
        for number in range(9):
            archive.filelist.append(archive.getinfo("bomb").__class__(f"again{number}"))
            for field in ("compress_size", "file_size", "CRC", "header_offset", "compress_type"):
                setattr(archive.filelist[-1], field, getattr(archive.getinfo("bomb"), field))
    path = tmp_path / "run.gpuviz"
    path.write_bytes(buffer.getvalue())

    with pytest.raises(FormatError, match="overlap"):
        load(path)


@EXAMPLES
@given(data=st.data())
def test_a_report_with_a_damaged_recording_is_refused(whole, tmp_path, data):
    text = bytearray(base64.b64encode(whole))
    at = data.draw(st.integers(0, len(text) - 1))
    text[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
    script = b'<script type="application/octet-stream" id="gpuviz-recording">'
    page = tmp_path / "run.html"
    page.write_bytes(b"<!doctype html>" + script + text + b"</script>")

    loads_equal_or_not_at_all(page)


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        (b"<!doctype html><p>hello", "the page has no recording: it is truncated"),
        (b'<html><script id="gpuviz-recording">UEs', "truncated; the script does not end"),
        (b'<html><script id="gpuviz-recording">U*s=</script>', "not base64"),
        (b'<html><script id="gpuviz-recording">eHh4</script>', "not a gpuviz recording"),
        (
            b'<html><script id="gpuviz-recording">UEsF</script><script id="gpuviz-recording-end">',
            "gpuviz-recording-end: truncated; the script does not end",
        ),
    ],
)
def test_a_page_without_a_recording_says_what_it_lacks(tmp_path, page, problem):
    path = tmp_path / "run.html"
    path.write_bytes(page)

    with pytest.raises(FormatError, match=problem) as caught:
        load(path)

    assert caught.value.path.startswith(str(path))


@pytest.mark.parametrize("kind", [OSError, MemoryError])
def test_a_failing_disk_or_a_lack_of_memory_is_not_called_damage(
    whole, tmp_path, monkeypatch, kind
):
    path = tmp_path / "run.gpuviz"
    path.write_bytes(whole)

    def fail(*_args, **_options):
        raise kind(5, "no such luck")

    monkeypatch.setattr(zipfile.ZipFile, "open", fail)

    with pytest.raises(kind, match="no such luck"):
        load(path)


def test_a_file_that_is_not_there_or_may_not_be_read_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing"):
        load(tmp_path / "missing.gpuviz")
    with pytest.raises(OSError, match="Input/output error"):
        load("/proc/self/mem")
