"""Hosts with clocks whose true times are known."""

from gpuviz.merging.clocks import Snapshot

S = 10**9
UNIX = 1_700_000_000 * S


class Host:
    """A host whose monotonic clock began some time ago and runs too fast or too slowly."""

    def __init__(self, draw, most_drift, most_uncertainty=20_000, wall=0):
        self.offset = draw.randrange(-(10**15), 10**15)
        self.drift = draw.uniform(-most_drift, most_drift)
        self.draw = draw
        self.most_uncertainty, self.wall = most_uncertainty, wall

    def monotonic(self, true):
        return 10**16 + self.offset + true + round(true * self.drift)

    def snapshots(self, begin, end):
        times = sorted({begin, end, *range(begin, end, S)})
        return [self.snapshot(true) for true in times]

    def snapshot(self, true, step=0):
        uncertainty = self.draw.randrange(50, self.most_uncertainty)
        read = true + self.draw.randrange(-uncertainty, uncertainty + 1)
        return Snapshot(self.monotonic(true), UNIX + read + step + self.wall, uncertainty)
