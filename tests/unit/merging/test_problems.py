"""What is unusual about recordings to be merged is noted; nothing of it raises an error."""

from dataclasses import replace

import pytest

import gpuviz
from gpuviz.data.manifest import Manifest
from gpuviz.errors import FormatError, GpuvizError
from gpuviz.recording import Recording
from tests.unit.merging.processes_of_a_run import process, program


@pytest.fixture(scope="module")
def recording():
    return program(1)


def test_missing_ranks_are_named(recording):
    merged = gpuviz.merge([process(recording, rank, ranks=5) for rank in (4, 0, 2)])

    assert "There is no recording of ranks 1 and 3 of 5." in merged.notes
    assert [each.rank for each in merged.processes] == [0, 2, 4]


def test_a_copy_of_a_recording_is_left_out(recording, tmp_path):
    one = process(recording, 0)
    paths = [one.save(tmp_path / "a.gpuviz"), one.save(tmp_path / "b.gpuviz")]

    merged = gpuviz.merge(paths)

    assert len(merged.processes) == 1
    assert merged.notes == (
        f"{paths[1]} has the same recording as {paths[0]}; it was left out.",
        "Recorded on a simulated GPU",
    ) or merged.notes[-1].startswith(str(paths[1]))


def test_of_a_part_and_the_whole_the_whole_is_kept(recording):
    whole = process(recording, 0)
    part = Recording(
        dict(whole.tables) | {"memory_events": whole.tables["memory_events"].slice(0, 3)},
        replace(whole.manifest, complete=False),
    )

    merged = gpuviz.merge([part, whole])

    assert merged.is_complete
    assert merged.tables["memory_events"].num_rows == whole.tables["memory_events"].num_rows


def test_two_programs_are_named(recording):
    parts = [
        process(recording, number, program=(name,))
        for number, name in enumerate(("train.py", "train.py", "serve.py"))
    ]

    notes = gpuviz.merge(parts).notes

    assert "The recordings are of 2 programs: train.py (2) and serve.py (1)." in notes


def test_two_launches_are_named(recording):
    parts = [process(recording, 0, ranks=1), process(recording, 1, ranks=2)]

    notes = gpuviz.merge(parts).notes

    assert "The recordings are of launches with 1 and 2 ranks, so of different ones." in notes


def test_one_rank_twice_is_noted(recording):
    launch = {"rank": 0, "ranks": 1}
    parts = [process(recording, number, launch=launch) for number in range(2)]

    notes = gpuviz.merge(parts).notes

    assert any(note.startswith("Several processes have rank 0") for note in notes)


def test_different_versions_are_noted(recording):
    libraries = {"torch": "2.11.0", "jax": "0.7.0"}, {"torch": "2.10.0", "numba": "0.62.0"}
    parts = [
        process(recording, number, cupy=cupy, libraries=libraries[number])
        for number, cupy in enumerate(("13.6", "14.0"))
    ]

    merged = gpuviz.merge(parts)

    assert "The processes had different versions of CuPy: 13.6 and 14.0." in merged.notes
    assert "The processes had different versions of PyTorch: 2.10.0 and 2.11.0." in merged.notes
    assert merged.manifest.library_versions == {"JAX": "0.7.0", "Numba": "0.62.0"}


def test_a_recording_of_another_day_is_noted(recording):
    day = 86_400 * 10**9
    parts = [process(recording, 0), process(recording, 1, start=day)]

    notes = gpuviz.merge(parts).notes

    assert any("is it of the same run?" in note for note in notes)


def test_what_is_missing_in_a_process_is_said_with_its_name(recording):
    parts = [
        process(recording, 0, ranks=2),
        process(recording, 1, ranks=2, complete=False, dropped=7),
    ]

    merged = gpuviz.merge(parts)

    assert not merged.is_complete
    assert merged.dropped == 7
    assert "rank 1: 7 events were dropped because buffers were full." in merged.notes


def test_an_empty_recording_is_merged(recording):
    empty = process(Recording({}, Manifest()), 1)

    merged = gpuviz.merge([process(recording, 0), empty])

    assert merged.devices == (0,)
    assert [dict(each.devices) for each in merged.processes] == [{0: 0}, {}]


def test_a_truncated_file_is_named(recording, tmp_path):
    path = process(recording, 0).save(tmp_path / "run.gpuviz")
    path.write_bytes(path.read_bytes()[:-100])

    for source in (path, tmp_path, tmp_path / "*.gpuviz"):
        with pytest.raises(FormatError, match=r"run\.gpuviz"):
            gpuviz.merge(source)


def test_a_truncated_file_among_others_is_left_out_unless_it_was_named(recording, tmp_path):
    whole = process(recording, 0).save(tmp_path / "0.gpuviz")
    damaged = process(recording, 1, ranks=2).save(tmp_path / "1.gpuviz")
    damaged.write_bytes(damaged.read_bytes()[:-100])

    for source in (tmp_path, str(tmp_path / "*.gpuviz")):
        merged = gpuviz.merge(source)
        assert len(merged.processes) == 1
        (note,) = (note for note in merged.notes if note.startswith("A file was left out: "))
        assert str(damaged) in note
    with pytest.raises(FormatError, match=r"1\.gpuviz"):
        gpuviz.merge([whole, damaged])


def test_files_are_found_by_folder_and_by_pattern(recording, tmp_path):
    for number in range(3):
        process(recording, number).save(tmp_path / f"{number}.gpuviz")
    (tmp_path / "notes.txt").write_text("")

    assert len(gpuviz.merge(tmp_path).processes) == 3
    assert len(gpuviz.merge(str(tmp_path / "[01].gpuviz")).processes) == 2
    assert len(gpuviz.merge([tmp_path / "0.gpuviz", tmp_path / "2.gpuviz"]).processes) == 2


@pytest.mark.parametrize("field", ["start_monotonic_ns", "start_unix_ns", "duration_ns"])
def test_impossible_times_are_refused(recording, field):
    damaged = process(recording, 1, **{field: 2**62})

    with pytest.raises(GpuvizError, match="recording 2 cannot be merged: its clocks have times"):
        gpuviz.merge([process(recording, 0), damaged])


def test_an_impossible_rank_counts_as_none(recording):
    merged = gpuviz.merge([process(recording, 0, launch={"rank": 2**40})])

    assert merged.processes[0].rank == -1


def test_nothing_to_merge_is_an_error(tmp_path):
    with pytest.raises(GpuvizError, match="has no recordings"):
        gpuviz.merge(tmp_path)
    with pytest.raises(GpuvizError, match="There are no recordings to merge"):
        gpuviz.merge([])
    with pytest.raises(FileNotFoundError):
        gpuviz.merge(tmp_path / "missing.gpuviz")
