"""Effects of CUDA calls on the host."""

import re
from enum import IntEnum
from typing import TYPE_CHECKING, Any

from gpuviz.analysis.columns import codes, plain
from gpuviz.recording.tables import DICTIONARIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

_VERSION = re.compile(r"(_v\d+|_ptsz|_ptds)+$")
_ALLOCATION = re.compile(
    r"cuMem(Alloc|Free|HostAlloc|HostRegister|HostUnregister)"
    r"|cuMem(Map|Unmap|Create|Release|SetAccess)$"
    r"|cuda(Malloc|Free|HostAlloc|HostRegister|HostUnregister)",
)
_SYNCHRONIZE = re.compile(r"(cu(Ctx|Stream|Event)|cuda(Device|Thread|Stream|Event))Synchronize$")
_QUERY = re.compile(r"cu(da)?(Stream|Event)Query$")
_COPY = re.compile(r"cu(da)?Memcpy(?!.*(Async|DtoD|DtoA|AtoD|AtoA|Peer))")
ON_DEVICE = ("device_to_device", "peer_to_peer")
_PAGEABLE = "pageable"


class CallKind(IntEnum):
    """Effect of a call on its thread; the first four values are those of the native core."""

    OTHER = 0
    ALLOCATION = 1
    SYNCHRONIZE = 2
    QUERY = 3
    MEMCPY = 4
    PAGEABLE_MEMCPY = 5


def kind_of_name(name: str) -> CallKind:
    """Return the kind of a driver or runtime call, as far as its name determines it.

    ``ALLOCATION``: allocates, frees, maps or pins memory, which may synchronize the device, unlike
    stream-ordered calls (``cuMemAllocAsync``). ``MEMCPY``: a synchronous copy from or to the host.
    """
    name = _VERSION.sub("", name)
    if _ALLOCATION.match(name) and "Async" not in name:
        return CallKind.ALLOCATION
    if _SYNCHRONIZE.match(name):
        return CallKind.SYNCHRONIZE
    if _QUERY.match(name):
        return CallKind.QUERY
    return CallKind.MEMCPY if _COPY.match(name) else CallKind.OTHER


def call_kinds(tables: "Mapping[str, pa.Table]") -> "NDArray[Any]":
    """Return the `CallKind` of each row of ``api_calls``.

    Copies within or between devices are ``OTHER``: the host does not wait for them. Asynchronous
    copies from or to pageable memory are ``PAGEABLE_MEMCPY``: CUDA stages them during the call.
    """
    import numpy as np

    calls = tables["api_calls"]
    kinds = _kinds_of_names(tables, calls["name"])
    if kinds.size == 0:
        return kinds
    on_device, pageable = _correlations_of_copies(tables)
    correlations = plain(calls["correlation"])
    waits = kinds == CallKind.MEMCPY
    kinds[waits & np.isin(correlations, on_device)] = CallKind.OTHER
    staged = np.isin(correlations, pageable) & (kinds == CallKind.OTHER)
    kinds[staged] = CallKind.PAGEABLE_MEMCPY
    return kinds


def _kinds_of_names(tables: "Mapping[str, pa.Table]", names: "pa.ChunkedArray") -> "NDArray[Any]":
    import numpy as np
    import pyarrow.compute as pc

    used = pc.unique(names)
    strings = tables["strings"]
    chosen = strings.filter(pc.is_in(strings["id"], value_set=used)).to_pydict()
    kind_of = dict(zip(chosen["id"], map(kind_of_name, chosen["text"]), strict=True))
    ids = used.to_numpy()
    if not ids.size:
        return np.zeros(0, np.uint8)
    found = [kind_of.get(name, CallKind.OTHER) for name in ids.tolist()]
    kinds: NDArray[Any]
    if ids.max() <= len(names):
        kinds = np.zeros(int(ids.max()) + 1, np.uint8)
        kinds[ids] = found
        kinds = kinds[plain(names)]
    else:
        kinds = np.array(found, np.uint8)[plain(pc.index_in(names, value_set=used))]
    return kinds


def _correlations_of_copies(
    tables: "Mapping[str, pa.Table]",
) -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return the correlation ids of copies without host memory, and of pageable copies."""
    import numpy as np

    activities = tables["activities"]
    kinds = codes(activities["kind"], DICTIONARIES["activities", "kind"])
    rows = np.flatnonzero(kinds == DICTIONARIES["activities", "kind"].index("memcpy"))
    copies = activities.select(["copy_kind", "source", "destination", "correlation"]).take(rows)
    correlations = plain(copies["correlation"])
    copy_kinds = codes(copies["copy_kind"], DICTIONARIES["activities", "copy_kind"])
    known = DICTIONARIES["activities", "copy_kind"]
    on_device = np.isin(copy_kinds, [known.index(kind) for kind in ON_DEVICE])
    memories = DICTIONARIES["activities", "source"]
    pageable = memories.index(_PAGEABLE)
    staged = codes(copies["source"], memories) == pageable
    staged |= codes(copies["destination"], memories) == pageable
    return correlations[on_device & (correlations != 0)], correlations[staged & (correlations != 0)]
