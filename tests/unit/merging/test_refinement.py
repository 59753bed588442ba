"""Alignment of two hosts by collectives: within the bound, never wider than by clocks alone."""

import random
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import gpuviz
from gpuviz.data.tables import schemas
from gpuviz.merging.clocks import UNKNOWN, HostClock, align
from gpuviz.merging.meetings import Meetings
from gpuviz.merging.refinement import refined
from gpuviz.recording import Recording
from tests.unit.merging.hosts import UNIX, Host, S
from tests.unit.merging.ranks_of_a_run import MS, ranks, with_collectives

CUPTI = 4_000


class Trial:
    """Two hosts that record at random times and meet in random collectives."""

    def __init__(self, seed, most_uncertainty=None, wall=0):
        self.draw = draw = random.Random(seed)
        most_drift = draw.choice([0, 1e-7, 1e-5, 4e-4])
        most = most_uncertainty or draw.choice([20_000, 500_000, 20_000_000])
        self.hosts = Host(draw, most_drift, most, wall), Host(draw, most_drift, most)
        self.starts = [draw.randrange(0, 5 * S) for _ in range(2)]
        self.ends = [10 * S + draw.randrange(S) for _ in range(2)]
        self.collectives = [self.collective() for _ in range(draw.choice([1, 5, 200]))]

    def collective(self):
        """Return when each host begins and ends a collective."""
        draw = self.draw
        begins = [draw.randrange(5 * S, 10 * S - 5 * MS) for _ in range(1)]
        begins.append(begins[0] + draw.randrange(-MS, MS))
        end = max(begins) + draw.randrange(10_000, 300_000)
        return [(begin, end + draw.randrange(5_000)) for begin in begins]

    def measured(self, host, true):
        """Return a time as CUPTI gives it."""
        return self.hosts[host].monotonic(true) + self.draw.randrange(-CUPTI, CUPTI + 1)

    def by_clocks(self):
        """Return the alignment of the second host by wall clocks, and its first and last time."""
        clocks = [
            HostClock(host.snapshots(start, end))
            for host, start, end in zip(self.hosts, self.starts, self.ends, strict=True)
        ]
        first, last = (self.hosts[1].monotonic(each[1]) for each in (self.starts, self.ends))
        return align(first, last, clocks[1], clocks[0]), first, last

    def meetings(self, off=()):
        """Return the collectives as bounds; some are off by a time."""
        rows = []
        for number, ((begin, end), (own_begin, own_end)) in enumerate(self.collectives):
            wrong = off[number] if number < len(off) else 0
            other = [self.measured(0, true) + wrong for true in (begin, end)]
            own = [self.measured(1, true) for true in (own_begin, own_end)]
            least, most = other[0] - own[1] - 10_000, other[1] - own[0] + 10_000
            rows.append((*own, least, most))
        begin, end, least, most = np.array(rows, np.int64).T
        return Meetings(begin, end, least.astype(float), most.astype(float))

    def error(self, found):
        """Return the largest error of an alignment."""
        start, end = self.starts[1], self.ends[1]
        times = [start, end, *(self.draw.randrange(start, end) for _ in range(50))]
        own = np.array([self.hosts[1].monotonic(true) for true in times], np.int64)
        right = [self.hosts[0].monotonic(true) for true in times]
        return int(np.abs(found.aligned(own) - np.array(right, np.int64)).max())


@pytest.mark.parametrize("seed", range(0, 1000, 100))
def test_the_error_is_within_the_bound_and_never_wider(seed):
    for each in range(seed, seed + 100):
        trial = Trial(each)
        found, first, last = trial.by_clocks()
        better = refined(found, first, last, trial.meetings())

        assert trial.error(better) <= better.error <= found.error
        assert not better.refuted


def test_collectives_narrow_the_error_of_vague_clocks():
    trial = Trial(1, most_uncertainty=20 * MS)
    trial.collectives = [trial.collective() for _ in range(200)]
    found, first, last = trial.by_clocks()

    better = refined(found, first, last, trial.meetings())

    assert better.error < found.error / 4
    assert (better.collectives, better.rejected) == (200, 0)


def test_collectives_that_contradict_the_others_are_rejected():
    trial = Trial(2, most_uncertainty=20 * MS)
    trial.collectives = [trial.collective() for _ in range(20)]
    found, first, last = trial.by_clocks()

    better = refined(found, first, last, trial.meetings(off=[S, -S, 200 * MS]))

    assert (better.collectives, better.rejected) == (17, 3)
    assert trial.error(better) <= better.error < found.error


def test_wall_clocks_that_differ_are_refuted_by_collectives():
    trial = Trial(3, most_uncertainty=1000, wall=30 * MS)
    trial.collectives = [trial.collective() for _ in range(200)]
    found, first, last = trial.by_clocks()
    assert trial.error(found) > found.error

    better = refined(found, first, last, trial.meetings())

    assert better.refuted == pytest.approx(30 * MS, abs=10 * MS)
    assert trial.error(better) <= better.error


def test_one_or_two_collectives_refute_no_clock():
    trial = Trial(4, most_uncertainty=1000, wall=30 * MS)
    trial.collectives = [trial.collective() for _ in range(2)]
    found, first, last = trial.by_clocks()

    assert refined(found, first, last, trial.meetings()) == replace(found, rejected=2)


def test_collectives_align_hosts_without_readings_of_the_wall_clock():
    trial = Trial(5)
    trial.collectives = [trial.collective() for _ in range(50)]
    found, first, last = trial.by_clocks()
    # As far off as the starts of the recordings.
    vague = replace(found, shift=found.shift + S, error=UNKNOWN)

    better = refined(vague, first, last, trial.meetings())

    assert trial.error(better) <= better.error
    assert not better.refuted


def on_hosts(parts, wall=0, uncertainty=5 * MS):
    """Return recordings as those of a host each, of which the second one's clock is ahead."""
    rows = [
        [
            {"time": at, "wall": UNIX + at + number * wall, "boot": 0, "uncertainty": uncertainty}
            for at in (0, 3 * S)
        ]
        for number in range(len(parts))
    ]
    schema = schemas()["clock_snapshots"]
    return [
        Recording(
            dict(part.tables) | {"clock_snapshots": pa.Table.from_pylist(own, schema=schema)},
            replace(part.manifest, boot_id=str(number), host=f"node{number}"),
        )
        for number, (part, own) in enumerate(zip(parts, rows, strict=True))
    ]


ARRIVALS = [[S + 10 * MS * each, S + 10 * MS * each + MS // 2] for each in range(10)]


def test_merge_narrows_the_error_and_says_so():
    merged = gpuviz.merge(on_hosts(ranks(ARRIVALS)))

    [_, error] = merged.table("processes")["clock_error"].to_pylist()
    assert 0 < error < 3 * MS
    assert "The error of node1 was narrowed by 10 collectives." in merged.notes
    starts = [row["starts"] for row in merged.collectives().to_pylist()]
    assert all(abs(late - early - MS // 2) <= error for early, late in starts)


def test_merge_aligns_by_collectives_where_wall_clocks_differ_and_says_so():
    merged = gpuviz.merge(on_hosts(ranks(ARRIVALS), wall=S, uncertainty=1000))

    [_, error] = merged.table("processes")["clock_error"].to_pylist()
    assert any("differ by about 1.00 s; times of node1" in note for note in merged.notes)
    assert not any("as far as the wall clocks" in note for note in merged.notes)
    starts = [row["starts"] for row in merged.collectives().to_pylist()]
    assert all(abs(late - early - MS // 2) <= error for early, late in starts)


@pytest.mark.parametrize(
    ("function", "root", "is_bounded"),
    [("all_gather", -1, True), ("broadcast", 0, False), ("reduce", 1, False), ("send", 1, False)],
)
def test_only_what_needs_all_ranks_bounds_both_sides(function, root, is_bounded):
    parts = [
        with_collectives(part, number, 2, function=function, peer=root)
        for number, part in enumerate(ranks(ARRIVALS))
    ]
    far = [replace(part.manifest, start_unix_ns=0) for part in parts]
    empty = schemas()["clock_snapshots"].empty_table()
    unread = [
        Recording(
            dict(part.tables) | {"clock_snapshots": empty},
            replace(manifest, boot_id=str(number), host=f"node{number}"),
        )
        for number, (part, manifest) in enumerate(zip(parts, far, strict=True))
    ]

    merged = gpuviz.merge(unread)

    [_, error] = merged.table("processes")["clock_error"].to_pylist()
    assert (error >= 0) == is_bounded
    assert not any("contradicted" in note for note in merged.notes)


def test_processes_of_one_host_need_no_collectives():
    merged = gpuviz.merge(ranks(ARRIVALS))

    assert merged.table("processes")["clock_error"].to_pylist() == [0, 0]
    assert not any("collective" in note for note in merged.notes)
