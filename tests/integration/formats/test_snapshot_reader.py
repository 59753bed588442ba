"""The viewer's reader of torch's snapshots, in WebAssembly, against `gpuviz.load`."""

import pickle
import random
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.exports import torch_export
from tests import fuzz
from tests.integration.formats.snapshots_in_browser import KINDS, agree, equal, in_browser, outcome
from tests.unit.formats.any_recording import any_recording
from tests.unit.formats.plain_snapshots import DATA, GOLDENS, SNAPSHOTS, golden_snapshot

GOLDEN = sorted(path.name.partition(".")[0] for path in GOLDENS.glob("*.json.xz"))


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


@pytest.mark.parametrize(("kind", "fewest"), [("viewer", 30), ("viewer_values", 10)])
def test_damaged_snapshots_are_refused_for_the_same_reason(kind, fewest, tmp_path):
    source = random.Random(3)
    paths = []
    for number in range(60):
        folder = tmp_path / str(number)
        folder.mkdir()
        paths.append(KINDS[kind](folder, source))

    accepted = [agree(read, path) for read, path in zip(in_browser(paths), paths, strict=True)]

    assert fewest < accepted.count(False) < len(paths)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_run_compares_the_readers(kind, tmp_path):
    path = KINDS[kind](tmp_path, random.Random(5))

    code, _, _ = fuzz.measured(path, outcome)

    assert fuzz.KINDS[kind] == (KINDS[kind], outcome)
    assert code in {0, 3}


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
