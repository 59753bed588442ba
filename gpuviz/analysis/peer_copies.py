"""Copies between GPUs, each once, with the stream it was issued on."""

from dataclasses import dataclass, fields

import numpy as np

from gpuviz.analysis.calls import HALVES
from gpuviz.analysis.launches import calls_of
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.tables import DICTIONARIES, Tables

_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_OUT, _INTO = (_COPY_KINDS.index(name) for name in HALVES)


@dataclass(frozen=True, eq=False)
class PeerCopies:
    """Copies between two GPUs, one element each, in the order of ``activities``.

    Attributes:
        activity: The row of ``activities``; of a copy through the host, that of its half at the
            source.
        arrival: The row of the half at the destination; -1 for a direct copy.
        call: The row of ``api_calls``, or -1.
        stream: The stream it was issued on, as far as it is known, else the one that ran it.
        device: The device of this stream.
        source: The device that it copies from.
        destination: The device that it copies to.
        time: When it began.
        end: When it ended, at the destination.
    """

    activity: np.ndarray
    arrival: np.ndarray
    call: np.ndarray
    stream: np.ndarray
    device: np.ndarray
    source: np.ndarray
    destination: np.ndarray
    time: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.activity)

    def among(self, chosen: np.ndarray) -> "PeerCopies":
        """Return the chosen copies."""
        return PeerCopies(**{each.name: getattr(self, each.name)[chosen] for each in fields(self)})

    @property
    def is_staged(self) -> np.ndarray:
        """Whether each goes through the host."""
        found: np.ndarray = self.arrival >= 0
        return found


def peer_copies(tables: Tables) -> PeerCopies:
    """Return the copies between GPUs. In part of a recording, halves without the other are left."""
    activities = tables["activities"]
    source, destination, ran_on = (
        plain(activities[name]) for name in ("source_device", "destination_device", "device")
    )
    kind = codes(activities["copy_kind"], _COPY_KINDS)
    correlation, running = plain(activities["correlation"]), plain(activities["stream"])
    rows = np.flatnonzero((source >= 0) & (destination >= 0) & (source != destination))
    rows = rows[kind[rows] != _INTO]
    arrivals = np.flatnonzero(kind == _INTO)
    arrival = np.append(arrivals, -1)[first_rows(correlation[arrivals], correlation[rows])]
    arrival[kind[rows] != _OUT] = -1
    kept = (kind[rows] != _OUT) | (arrival >= 0)
    rows, arrival = rows[kept], arrival[kept]
    call = calls_of(tables, correlation[rows])
    stream = running[rows].copy()
    issued = np.append(plain(tables["api_calls"]["stream"]), 0)[call]
    stream[issued != 0] = issued[issued != 0]
    # A copy that another stream ran than the one it was issued on was issued on the other device.
    here, there = (
        ran_on[rows],
        np.where(ran_on[rows] == source[rows], destination[rows], source[rows]),
    )
    time, end = (plain(activities[name])[rows] for name in ("time", "end"))
    is_staged = arrival >= 0
    end[is_staged] = plain(activities["end"])[arrival[is_staged]]
    return PeerCopies(
        activity=rows,
        arrival=arrival,
        call=call,
        stream=stream,
        device=np.where(stream == running[rows], here, there),
        source=source[rows],
        destination=destination[rows],
        time=time,
        end=np.maximum(time, end),
    )
