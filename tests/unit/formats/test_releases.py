"""The recordings that releases left are loaded as they were."""

import pytest

import gpuviz
from gpuviz.data import tables
from tests.unit.formats.record_release import FOLDER, MIB, record

FILES = sorted(FOLDER.glob("*.gpuviz"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_recording_of_a_release_is_loaded_for_ever(path, tmp_path):
    recording = gpuviz.load(path)
    again = gpuviz.load(recording.save(tmp_path / "again.gpuviz"))

    for each in (recording, again):
        kernels = {row["name"]: row["total_ns"] for row in each.kernels().to_pylist()}
        assert [note.endswith("Recorded on a simulated GPU") for note in each.notes] == [True]
        assert each.peak().bytes == 16 * MIB
        assert kernels == {"scale": 3_200_000, "read": 800_000}
        assert [row["bytes"] for row in each.copies().to_pylist()] == [32 * MIB]
        assert each.iterations().num_rows == 8
        assert each.host_memory.peak().bytes == 4 * MIB
        assert {hazard.kind for hazard in each.hazards()} >= {"RAW", "reuse"}
        assert {finding.rule for finding in each.findings()} >= {"R40"}
        assert {row["source"] for row in each.sites("line").to_pylist()} == {
            "x, y = gpu.empty(4 * MIB), gpu.empty(2 * MIB)"
        }


def test_every_release_has_left_a_recording():
    assert "0.1.0" in {path.stem for path in FILES}


@pytest.mark.usefixtures("search_for_holders")
def test_the_recording_of_this_version_has_rows_in_the_tables_of_one_process():
    recording = record()
    empty = {name for name in tables.schemas() if not recording.tables[name].num_rows}

    assert empty == {
        *("graph_calls", "overheads", "collectives", "processes"),
        *("host_accesses", "host_samples", "tensors", "unrecorded_spans"),
    }
