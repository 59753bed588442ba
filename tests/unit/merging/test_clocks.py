"""Clocks of several hosts: the bound of the error holds, steps are found, one host is exact."""

import random

import numpy as np
import pyarrow as pa
import pytest

import gpuviz
from gpuviz.data.tables import schemas
from gpuviz.merging.clocks import HostClock, align
from gpuviz.recording import Recording
from tests.unit.merging.hosts import UNIX, Host, S
from tests.unit.merging.processes_of_a_run import process, program


def trial(seed):
    """Return the largest error of aligned times, and the printed bound."""
    draw = random.Random(seed)
    most_drift = draw.choice([0, 1e-7, 1e-5, 4e-4])
    one, other = Host(draw, most_drift), Host(draw, most_drift)
    starts = [draw.randrange(0, 20 * S) for _ in range(2)]
    ends = [start + draw.randrange(S // 100, 20 * S) for start in starts]
    # A killed process has no last snapshot.
    lost = draw.choice([0, 0, S // 2])
    clocks = [
        HostClock(host.snapshots(start, max(start + 1, end - lost)))
        for host, start, end in zip((one, other), starts, ends, strict=True)
    ]
    times = [draw.randrange(starts[1], ends[1]) for _ in range(20)] + [starts[1], ends[1]]
    first, last = other.monotonic(starts[1]), other.monotonic(ends[1])

    found = align(first, last, clocks[1], clocks[0])

    aligned = found.aligned(np.array([other.monotonic(true) for true in times], np.int64))
    errors = [abs(int(at) - one.monotonic(true)) for at, true in zip(aligned, times, strict=True)]
    return max(errors), found.error


@pytest.mark.parametrize("seed", range(0, 1000, 100))
def test_the_error_is_within_the_bound(seed):
    for each in range(seed, seed + 100):
        error, bound = trial(each)
        assert error <= bound


def test_the_bound_is_of_the_size_of_the_readings():
    draw = random.Random(1)
    hosts = Host(draw, 0), Host(draw, 0)
    clocks = [HostClock(host.snapshots(0, 10 * S)) for host in hosts]

    found = align(hosts[1].monotonic(0), hosts[1].monotonic(10 * S), clocks[1], clocks[0])

    assert 0 < found.error < 100_000


def test_durations_stay_exact_where_clocks_run_alike():
    draw = random.Random(2)
    hosts = Host(draw, 0), Host(draw, 0)
    clocks = [HostClock(host.snapshots(0, 10 * S)) for host in hosts]
    times = np.array([hosts[1].monotonic(true) for true in (0, 1, 1234, 10 * S)], np.int64)

    found = align(int(times[0]), int(times[-1]), clocks[1], clocks[0])

    assert np.diff(found.aligned(times)).tolist() == np.diff(times).tolist()


@pytest.mark.parametrize("size", [2 * S, -3600 * S, 50_000_000])
def test_a_step_of_the_wall_clock_is_found_and_bounded(size):
    draw = random.Random(3)
    one, other = Host(draw, 0), Host(draw, 0)
    stepped = [other.snapshot(true * S, size if true > 5 else 0) for true in range(10)]
    clocks = HostClock(one.snapshots(0, 10 * S)), HostClock(stepped)
    times = np.array([other.monotonic(true * S) for true in range(10)], np.int64)

    found = align(int(times[0]), int(times[-1]), clocks[1], clocks[0])

    [step] = clocks[1].steps
    assert abs(step.size - size) < 50_000
    assert step.monotonic == other.monotonic(6 * S)
    assert abs(size) <= found.error <= abs(size) + 200_000
    # No jump on the axis.
    assert np.diff(found.aligned(times)).tolist() == np.diff(times).tolist()


def with_clocks(recording, walls, uncertainty=1000):
    rows = [
        {"time": time, "wall": wall, "boot": 0, "uncertainty": uncertainty} for time, wall in walls
    ]
    clocks = pa.Table.from_pylist(rows, schema=schemas()["clock_snapshots"])
    return Recording(dict(recording.tables) | {"clock_snapshots": clocks}, recording.manifest)


def test_processes_of_one_host_are_exact_whatever_the_wall_clock_does():
    parts = [
        process(program(1), 0, ranks=2, start=0),
        process(program(2), 1, ranks=2, start=7_654_321, start_unix_ns=1),
    ]

    merged = gpuviz.merge(parts)

    starts = merged.table("processes")["start"].to_pylist()
    assert starts == [0, 7_654_321]
    assert merged.table("processes")["clock_error"].to_pylist() == [0, 0]
    assert not any("clock" in note for note in merged.notes)


def test_readings_of_the_clock_are_those_of_the_first_host():
    parts = [
        process(program(1), 0),
        process(program(2), 1, start=100),
        process(program(3), 2, boot="other", host="node1"),
    ]

    readings = [part.table("clock_snapshots").num_rows for part in parts]
    assert gpuviz.merge(parts).table("clock_snapshots").num_rows == sum(readings[:2])


def test_processes_of_another_host_share_one_alignment():
    far = {"boot": "other", "host": "node1"}
    ahead = 5 * S
    parts = [
        with_clocks(process(program(1), 0), [(0, UNIX), (S, UNIX + S)]),
        with_clocks(process(program(2), 1, **far), [(0, UNIX + ahead), (S, UNIX + ahead + S)]),
        with_clocks(process(program(3), 2, start=1234, **far), []),
    ]

    merged = gpuviz.merge(parts)

    first, second, third = merged.table("processes").to_pylist()
    assert first["start"] == 0
    assert abs(second["start"] - ahead) <= second["clock_error"] < 100_000
    assert third["start"] - second["start"] == 1234
    assert third["clock_error"] == second["clock_error"]
    [note] = [note for note in merged.notes if "other hosts" in note]
    assert note.startswith("Times of other hosts are within ")
    assert note.endswith("of those of node0, as far as the wall clocks of the hosts agree.")


def test_a_recording_without_clocks_is_aligned_by_its_start():
    part = process(program(2), 1, boot="", start_unix_ns=UNIX + 3 * S)
    old = Recording(
        {name: each for name, each in part.tables.items() if name != "clock_snapshots"},
        part.manifest,
    )

    merged = gpuviz.merge(
        [with_clocks(process(program(1), 0, start_unix_ns=UNIX), [(0, UNIX)]), old]
    )

    row = merged.table("processes").to_pylist()[1]
    assert abs(row["start"] - 3 * S) < 10_000
    assert row["clock_error"] == -1
    assert any("aligned by the starts of the recordings" in note for note in merged.notes)


def test_a_step_is_noted():
    parts = [
        with_clocks(process(program(1), 0), [(0, UNIX), (S, UNIX + S)]),
        with_clocks(
            process(program(2), 1, boot="other", host="node1"),
            [(0, UNIX), (S, UNIX + S), (2 * S, UNIX + 4 * S)],
        ),
    ]

    notes = gpuviz.merge(parts).notes

    assert any(
        note.startswith("The wall clock of node1 was set 2.00 s ahead while recording")
        for note in notes
    )
