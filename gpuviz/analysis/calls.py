"""Effects of CUDA calls on the host."""

import re

import numpy as np
import pyarrow as pa

from gpuviz.analysis.grouping import numbered
from gpuviz.data.codes import CallKind
from gpuviz.data.columns import codes, plain
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES, Tables

_VERSION = re.compile(r"(_v\d+|_ptsz|_ptds)+$")
_ALLOCATION = re.compile(
    r"cuMem(Alloc|Free|HostAlloc|HostRegister|HostUnregister)"
    r"|cuMem(Map|Unmap|Create|Release|SetAccess)$"
    r"|cuda(Malloc|Free|HostAlloc|HostRegister|HostUnregister)",
)
_SYNCHRONIZE = re.compile(r"(cu(Ctx|Stream|Event)|cuda(Device|Thread|Stream|Event))Synchronize$")
_QUERY = re.compile(r"cu(da)?(Stream|Event)Query$")
_COPY = re.compile(r"cu(da)?Memcpy(?!.*(Async|DtoD|DtoA|AtoD|AtoA|Peer))")
# The halves of a copy between devices that goes through the host.
HALVES = ("peer_to_host", "host_to_peer")
ON_DEVICE = ("device_to_device", "peer_to_peer", *HALVES)
_PAGEABLE = "pageable"


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


def call_kinds(tables: Tables) -> np.ndarray:
    """Return the `CallKind` of each row of ``api_calls``.

    Copies within or between devices are ``OTHER``: the host does not wait for them. Asynchronous
    copies from or to pageable memory are ``PAGEABLE_MEMCPY``: CUDA stages them during the call.
    """
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


def _kinds_of_names(tables: Tables, names: pa.ChunkedArray) -> np.ndarray:
    ids = plain(names)
    if not ids.size:
        return np.zeros(0, np.uint8)
    rows, first = numbered(ids)
    found = [kind_of_name(text) for text in texts(tables, ids[first])]
    kinds: np.ndarray = np.array(found, np.uint8)[rows]
    return kinds


def _correlations_of_copies(
    tables: Tables,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the correlation ids of copies without host memory, and of pageable copies."""
    activities = tables["activities"]
    kinds = codes(activities["kind"], DICTIONARIES["activities", "kind"])
    rows = np.flatnonzero(kinds == DICTIONARIES["activities", "kind"].index("memcpy"))
    correlations = plain(activities["correlation"])[rows]
    copy_kinds = codes(activities["copy_kind"], DICTIONARIES["activities", "copy_kind"])[rows]
    known = DICTIONARIES["activities", "copy_kind"]
    on_device = np.isin(copy_kinds, [known.index(kind) for kind in ON_DEVICE])
    memories = DICTIONARIES["activities", "source"]
    pageable = memories.index(_PAGEABLE)
    staged = codes(activities["source"], memories)[rows] == pageable
    staged |= codes(activities["destination"], memories)[rows] == pageable
    return correlations[on_device & (correlations != 0)], correlations[staged & (correlations != 0)]
