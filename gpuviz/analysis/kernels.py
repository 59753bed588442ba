"""Kernel table of a recording: counts, times and launch sites."""

import re
from typing import Literal

import numpy as np
import pyarrow as pa

from gpuviz.analysis.grouping import Groups
from gpuviz.analysis.launches import (
    CallSites,
    calls_of,
    check_by,
    durations,
    stacks_of,
    text_numbers,
)
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES

# Numba tags each compiled version of a kernel.
_ABI_TAG = re.compile(r"\[abi:\w*\]")


def kernels(
    recording: RecordingData,
    by: Literal["name", "name_and_line", "line", "stack", "module"] = "name",
) -> pa.Table:
    """Return counts and times of kernels by name, name and line, line, call stack or module.

    Most time comes first. Columns: ``name`` (untrusted text), ``site`` (``function (file:line)`` of
    the user's innermost line), ``source`` (the line's text), ``stack`` (its id), ``module`` (the
    path of the module of a neural network that launched it, or whose gradients it computes; empty
    if unknown or if there is none), ``phase`` (``forward``, ``backward`` or ``optimizer``; empty if
    it is unknown or another one), ``sites`` (the
    ``site`` of every line that launched it, most launches first), ``count``; ``total_ns``,
    ``median_ns``, ``min_ns`` and ``max_ns`` of the time on the GPU, with concurrent kernels counted
    separately (in a window of a recording, of the time in it); ``share`` of the summed time of all
    kernels in the recording; ``launch_delay_ns``, as in HTA: the median time from the return of the
    launch call (of the graph's launch for kernels of a graph) to the start of the kernel, 0 for
    kernels that started before the return, null if no call is known; ``grid`` and ``block``, three
    numbers each, null if unknown. If names, lines, stacks, phases, grids or blocks differ within a
    row, those of the most frequent launch are given.

    Raises:
        ValueError: ``by`` has another value.
    """
    check_by(by, ("name", "name_and_line", "line", "stack", "module"))
    activities = recording.tables["activities"]
    known = DICTIONARIES["activities", "kind"]
    kind = known.index("kernel")
    needed = activities.select(["time", "end", "name", "launch", "correlation"])
    rows = needed.take(np.flatnonzero(codes(activities["kind"], known) == kind))
    calls = calls_of(recording.tables, plain(rows["correlation"]))
    call_sites = CallSites(recording, stacks_of(recording.tables, calls))
    names, launches = text_numbers(recording.tables, plain(rows["name"])), plain(rows["launch"])
    keys = [names] if by.startswith("name") else []
    if by != "name":
        keys.append(call_sites.numbers(by.removeprefix("name_and_")))
    groups = Groups(keys)
    typical = groups.typical_rows([names, call_sites.stacks, launches])
    lengths = groups.values(durations(rows, recording.bounds))
    totals = lengths["sum"]
    table = pa.table(
        {
            "name": pa.array(texts(recording.tables, plain(rows["name"])[typical]), pa.utf8()),
            **call_sites.columns(typical),
            **call_sites.places(typical),
            "sites": call_sites.lists(groups.distinct(call_sites.numbers("line"))),
            "count": groups.counts,
            "total_ns": totals,
            "median_ns": lengths["median"],
            "min_ns": lengths["least"],
            "max_ns": lengths["greatest"],
            "share": totals / max(1, int(totals.sum())),
            "launch_delay_ns": groups.medians(_delays(recording, rows, calls), calls >= 0),
            **_shapes(recording, launches[typical]),
        },
    )
    order = [("total_ns", "descending"), ("count", "descending"), ("name", "ascending")]
    return table.sort_by([*order, ("stack", "ascending")])


def short_name(name: str) -> str:
    """Return the last word of a demangled name without arguments, scopes and Numba's ABI tags."""
    depth, kept = 0, ""
    for sign in _ABI_TAG.sub("", name):
        depth += (sign in "<(") - (sign in ">)" and depth > 0)
        kept += sign if depth == 0 and sign not in ">)" else ""
    words = kept.rpartition("::")[2].split()
    return words[-1] if words else name


def _delays(recording: RecordingData, rows: pa.Table, calls: np.ndarray) -> np.ndarray:
    """Return the time from a call's return to the kernel's start; undefined without a call."""
    begin = plain(rows["time"])
    returned = begin.copy()
    returned[calls >= 0] = plain(recording.tables["api_calls"]["end"])[calls[calls >= 0]]
    delays: np.ndarray = np.maximum(begin - returned, 0)
    return delays


def _shapes(recording: RecordingData, launches: np.ndarray) -> dict[str, pa.Array]:
    columns = recording.tables["launch_configurations"].to_pydict()
    axes = {name: [f"{name}_{axis}" for axis in "xyz"] for name in ("grid", "block")}
    shapes = {}
    for name, three in axes.items():
        values = zip(*(columns[axis] for axis in three), strict=True)
        shape_of = dict(zip(columns["id"], values, strict=True))
        found = [shape_of.get(launch) for launch in launches.tolist()]
        shapes[name] = pa.array(found, pa.list_(pa.uint32(), 3))
    return shapes
