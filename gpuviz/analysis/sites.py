"""Call-site table of a recording: live and total bytes."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from gpuviz.analysis.columns import codes, plain
from gpuviz.analysis.state import ALLOCATED, state_at
from gpuviz.recording.tables import ACTIONS

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from gpuviz.recording.recording import Moment, Recording

NO_STACK = "(no call stack)"


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


def sites(
    recording: "Recording",
    by: Literal["stack", "line"] = "stack",
    at: "Moment" = "peak",
    device: int | None = None,
) -> "pa.Table":
    """Return bytes and counts by call site, most live bytes first.

    Columns: ``site`` (``function (file:line)`` of the user's innermost line), ``source`` (the
    line's text), ``stack`` (its id; by line, one of the line's stacks), ``live_bytes`` and
    ``live_count`` (allocated at the moment ``at``), ``total_bytes`` and ``total_count`` (allocated
    during the recording, without initial events), and ``largest`` (bytes of the largest single
    allocation). Sizes are rounded block sizes.

    Raises:
        ValueError: ``by`` is neither ``stack`` nor ``line``, or there is no such device.
    """
    import pyarrow as pa

    if by not in ("stack", "line"):
        raise ValueError(f'by must be "stack" or "line", got {by!r}')
    if device is not None:
        recording.device_or_first(device)
    found: dict[Any, _Site] = {}
    for row in _live(recording, at, device):
        site = _site(recording, found, by, row["stack"])
        site.live_bytes += row["size_sum"]
        site.live_count += row["size_count"]
        site.largest = max(site.largest, row["size_max"])
    for row in _total(recording, device):
        site = _site(recording, found, by, row["stack"])
        site.total_bytes += row["size_sum"]
        site.total_count += row["size_count"]
        site.largest = max(site.largest, row["size_max"])
    names = list(_Site.__slots__)
    ordered = sorted(found.values(), key=_most_first)
    columns = [[getattr(site, name) for site in ordered] for name in names]
    kinds = [pa.utf8(), pa.utf8(), pa.uint32(), *[pa.int64()] * 5]
    return pa.table([pa.array(c, k) for c, k in zip(columns, kinds, strict=True)], names=names)


def _most_first(site: _Site) -> tuple[int, ...]:
    return -site.live_bytes, -site.total_bytes, -site.total_count, site.stack


def _site(
    recording: "Recording",
    found: dict[Any, _Site],
    by: str,
    stack: int,
) -> _Site:
    frame = recording.call_stacks.user_frame(stack)
    text = frame.site if frame else NO_STACK
    key = stack if by == "stack" else text
    if key not in found:
        found[key] = _Site(text, frame.source if frame else "", stack)
    return found[key]


def _live(recording: "Recording", at: "Moment", device: int | None) -> list[dict[str, Any]]:
    import pyarrow as pa

    blocks = state_at(recording, at, device).blocks()
    chosen = blocks["state"] == ALLOCATED
    if device is not None:
        chosen &= blocks["device"] == device
    sizes = pa.array(blocks["size"][chosen].astype("int64"))
    return _by_stack(pa.table({"stack": blocks["stack"][chosen], "size": sizes}))


def _total(recording: "Recording", device: int | None) -> list[dict[str, Any]]:
    import pyarrow as pa

    events = recording.tables["memory_events"].slice(recording.manifest.initial_events)
    chosen = codes(events["action"], ACTIONS) == ACTIONS.index("alloc")
    if device is not None:
        chosen &= plain(events["device"]) == device
    return _by_stack(events.select(["stack", "size"]).filter(pa.array(chosen)))


def _by_stack(table: "pa.Table") -> list[dict[str, Any]]:
    """Return the allocations of each stack, in the order in which stacks appear."""
    import numpy as np

    # Not `group_by`, which makes pyarrow import its dataset module; that takes longer than this.
    ids, stacks = _numbered(plain(table["stack"]))
    sizes = plain(table["size"])
    first = np.full(len(ids), len(stacks))
    first[stacks[::-1]] = np.arange(len(stacks))[::-1]
    total, largest = np.zeros((2, len(ids)), np.int64)
    np.add.at(total, stacks, sizes)
    np.maximum.at(largest, stacks, sizes)
    found = np.flatnonzero(first < len(stacks))
    found = found[np.argsort(first[found])]
    columns = {
        "stack": ids[found],
        "size_sum": total[found],
        "size_count": np.bincount(stacks, minlength=len(ids))[found],
        "size_max": largest[found],
    }
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return [dict(zip(columns, row, strict=True)) for row in rows]


def _numbered(stacks: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return ids that include all of ``stacks``, and the position of each stack among them."""
    import numpy as np

    known = int(stacks.max(initial=0)) + 1
    # Ids of a recorder are dense; those of other tools' files may be arbitrary.
    if known <= 2 * len(stacks) + 65536:
        return np.arange(known), stacks
    return np.unique(stacks, return_inverse=True)
