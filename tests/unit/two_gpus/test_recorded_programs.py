"""What recordings of two H100 show; ``python -m tests.gpu.two_gpus FOLDER`` made them."""

from pathlib import Path

import pytest

import gpuviz
from gpuviz.data.stream_handle import NO_HANDLE
from tests.gpu import two_gpus

DATA = Path(__file__).parent / "data"


def load(name):
    return gpuviz.load(DATA / f"{name}.gpuviz")


def streams_of_a_program(recording):
    """Return the handles of the streams that the program made, by device."""
    return [
        row["handle"]
        for row in recording.table("streams").to_pylist()
        if row["kind"] == "non_blocking"
    ]


def rows_that_fail(rows):
    return [(what, expected, found) for what, expected, found, is_met in rows if not is_met]


def test_ordered_copies_through_the_host_are_copies_between_gpus_without_a_hazard():
    recording = load("peer_copies_staged")

    compute, copies = streams_of_a_program(recording)
    rows = list(two_gpus.peer_copies(recording, compute, copies))

    assert rows_that_fail(rows) == []
    assert len(rows) == 6


def test_each_of_them_is_counted_once_with_the_time_of_the_whole_copy():
    recording = load("peer_copies_staged")

    (row,) = recording.copies().to_pylist()

    assert (row["copy_kind"], row["host_memory"], row["count"]) == ("peer_to_peer", "staged", 20)
    assert row["bytes"] == sum(range(1, 21)) << 20
    # CUPTI's times of the last pieces would be 900 GB/s, which no link to a host has.
    assert 30e9 < row["bytes_per_second"] < 40e9


def test_their_halves_stay_rows_with_the_gpus_of_both_ends():
    recording = load("peer_copies_staged")

    halves = [
        (row["copy_kind"], row["device"], row["source_device"], row["destination_device"])
        for row in recording.table("activities").to_pylist()
        if row["kind"] == "memcpy"
    ]

    assert sorted(set(halves)) == [("host_to_peer", 1, 0, 1), ("peer_to_host", 0, 0, 1)]
    assert len(halves) == 40


def test_gpus_are_busy_for_the_whole_time_of_a_large_copy_through_the_host():
    recording = load("peer_copies_staged")
    copies = recording.derived["peer_copies"].to_pylist()

    whole_ns = sum(row["end"] - row["time"] for row in copies)

    for device in recording.overlap().devices:
        assert device.copy_ns == 0
        assert 0.9 * whole_ns < device.device_copy_ns <= whole_ns


def test_a_copy_through_the_host_that_waits_for_nothing_is_one_hazard():
    (hazard,) = load("hazard_staged").hazards()

    assert (hazard.kind, hazard.tier) == ("RAW", "certain")
    assert (hazard.first.name, hazard.first.gpu) == ("cupy_fill", "GPU 0")
    assert (hazard.second.name, hazard.second.gpu) == ("memcpy PtoP", "GPU 1")
    assert "internal stream" not in hazard.fix


@pytest.mark.parametrize("name", ["peer_copies_staged", "hazard_staged"])
def test_what_is_marked_stays_as_it_is_when_it_is_saved_and_loaded_again(name, tmp_path):
    recording = load(name)
    recording.save(tmp_path / "again.gpuviz")

    again = gpuviz.load(tmp_path / "again.gpuviz")

    for table in ("activities", "api_calls"):
        assert again.table(table).equals(recording.table(table))
    assert again.derived["peer_copies"].equals(recording.derived["peer_copies"])


def test_the_stream_of_such_a_copy_is_never_one_of_the_drivers_own():
    recording = load("peer_copies_staged")
    own = {r["id"] for r in recording.table("streams").to_pylist() if r["handle"] == NO_HANDLE}

    issued_on = {row["stream"] for row in recording.derived["peer_copies"].to_pylist()}

    assert own
    assert not issued_on & own
