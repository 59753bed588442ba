"""Call-site table of a recording: live and total bytes."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from gpuviz.analysis.grouping import Groups
from gpuviz.analysis.initial_state import ALLOCATED
from gpuviz.analysis.launches import check_by
from gpuviz.analysis.state import state_at
from gpuviz.data.columns import codes, plain
from gpuviz.data.recording_data import Moment, RecordingData
from gpuviz.data.tables import ACTIONS, FRAMEWORKS


@dataclass(slots=True)
class _Site:
    site: str
    source: str
    stack: int
    live_bytes: int = 0
    live_count: int = 0
    total_bytes: int = 0
    total_count: int = 0
    largest: int = 0
    frameworks: str = ""


def sites(
    recording: RecordingData,
    by: Literal["stack", "line"] = "stack",
    at: Moment = "peak",
    device: int | None = None,
) -> pa.Table:
    """Return bytes and counts by call site, most live bytes first.

    Columns: ``site`` (``function (file:line)`` of the user's innermost line), ``source`` (the
    line's text), ``stack`` (its id; by line, one of the line's stacks), ``live_bytes`` and
    ``live_count`` (allocated at the moment ``at``), ``total_bytes`` and ``total_count`` (allocated
    during the recording, without initial events), and ``largest`` (bytes of the largest single
    allocation), and ``frameworks`` (the libraries that own them, such as ``cupy`` or
    ``cupy, torch``; empty if unknown). Sizes are rounded block sizes.

    Raises:
        ValueError: ``by`` is neither ``stack`` nor ``line``, or there is no such device.
    """
    check_by(by, ("stack", "line"))
    if device is not None:
        recording.device_or_first(device)
    found: dict[Any, _Site] = {}
    for row in _live(recording, at, device):
        site = _site(recording, found, by, row)
        site.live_bytes += row["size_sum"]
        site.live_count += row["size_count"]
        site.largest = max(site.largest, row["size_max"])
    for row in _total(recording, device):
        site = _site(recording, found, by, row)
        site.total_bytes += row["size_sum"]
        site.total_count += row["size_count"]
        site.largest = max(site.largest, row["size_max"])
    names = list(_Site.__slots__)
    ordered = sorted(found.values(), key=_most_first)
    columns = [[getattr(site, name) for site in ordered] for name in names]
    kinds = [pa.utf8(), pa.utf8(), pa.uint32(), *[pa.int64()] * 5, pa.utf8()]
    return pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names=names)


def _most_first(site: _Site) -> tuple[int, ...]:
    return -site.live_bytes, -site.total_bytes, -site.total_count, site.stack


def _site(
    recording: RecordingData,
    found: dict[Any, _Site],
    by: str,
    row: dict[str, Any],
) -> _Site:
    """Return the site of a row, which is added to its frameworks."""
    stack, framework = row["stack"], FRAMEWORKS[max(row["framework"], 0)]
    site, source = recording.call_stacks.call_site(stack)
    key = stack if by == "stack" else site
    if key not in found:
        found[key] = _Site(site, source, stack)
    known = set(filter(None, (*found[key].frameworks.split(", "), framework)))
    found[key].frameworks = ", ".join(sorted(known))
    return found[key]


def _live(recording: RecordingData, at: Moment, device: int | None) -> list[dict[str, Any]]:
    blocks = state_at(recording, at, device).blocks()
    chosen = blocks["state"] == ALLOCATED
    if device is not None:
        chosen &= blocks["device"] == device
    allocated = blocks["size"][chosen].astype("int64")
    return _by_stack(blocks["stack"][chosen], blocks["framework"][chosen], allocated)


def _total(recording: RecordingData, device: int | None) -> list[dict[str, Any]]:
    events = recording.tables["memory_events"].slice(recording.manifest.initial_events)
    chosen = codes(events["action"], ACTIONS) == ACTIONS.index("alloc")
    if device is not None:
        chosen &= plain(events["device"]) == device
    owners = codes(events["framework"], FRAMEWORKS)[chosen]
    return _by_stack(plain(events["stack"])[chosen], owners, plain(events["size"])[chosen])


def _by_stack(
    stacks: np.ndarray, frameworks: np.ndarray, allocated: np.ndarray
) -> list[dict[str, Any]]:
    """Return the allocations of each stack and framework, in the order in which they appear."""
    groups = Groups([stacks, frameworks])
    sizes = groups.totals(allocated)
    columns = {
        "stack": stacks[groups.first_rows],
        "framework": frameworks[groups.first_rows],
        "size_sum": sizes["sum"],
        "size_count": groups.counts,
        "size_max": sizes["greatest"],
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]
