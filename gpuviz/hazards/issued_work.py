"""The kernels, copies and collectives of a recording, as operations."""

import re

import numpy as np
import pyarrow as pa

from gpuviz.analysis.calls import kind_of_name
from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.peer_copies import PeerCopies, peer_copies
from gpuviz.analysis.touches import Touches
from gpuviz.data.codes import CallKind, Code, CopyBit, HazardCopy
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.stream_handle import NO_HANDLE
from gpuviz.data.strings import texts
from gpuviz.data.tables import DICTIONARIES, Tables
from gpuviz.hazards.known_graphs import KnownGraphs, are_signalling
from gpuviz.hazards.operation_rows import OperationRows, touches_of

_KINDS = DICTIONARIES["activities", "kind"]
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_STREAM_KINDS = DICTIONARIES["streams", "kind"]
_MEMORIES = DICTIONARIES["activities", "host_memory"]
_RANGE = "range"
# Between devices copies are as on one.
_COPIES = {
    _COPY_KINDS.index("host_to_device"): HazardCopy.HOST_TO_DEVICE,
    _COPY_KINDS.index("device_to_host"): HazardCopy.DEVICE_TO_HOST,
    _COPY_KINDS.index("device_to_device"): HazardCopy.DEVICE_TO_DEVICE,
    _COPY_KINDS.index("peer_to_peer"): HazardCopy.DEVICE_TO_DEVICE,
}
_PEER = _COPY_KINDS.index("peer_to_peer")


def add_activities(rows: OperationRows, tables: Tables, used: Touches, graphs: KnownGraphs) -> None:
    """Add the kernels, copies and fills of each call, but for those of graphs that are known."""
    activities, calls = tables["activities"], tables["api_calls"]
    correlation = plain(activities["correlation"])
    call = first_rows(plain(calls["correlation"]), correlation)
    kind = codes(activities["kind"], _KINDS)
    is_first = first_rows(correlation, correlation) == np.arange(len(correlation))
    chosen = is_first & (call >= 0) & (kind != _KINDS.index(_RANGE))
    chosen &= ~np.isin(correlation, graphs.launched)
    begin = plain(calls["time"])
    copies = peer_copies(tables)
    copies = copies.among((copies.call >= 0) & (plain(activities["graph"])[copies.activity] == 0))
    _add_peer_copies(rows, tables, used, copies)
    row = np.flatnonzero(chosen & ~np.isin(correlation, correlation[copies.activity]))
    call, kind = call[row], kind[row]
    stream = plain(activities["stream"])[row]
    names = plain(activities["name"])[row]
    is_kernel = kind == _KINDS.index("kernel")
    is_opaque = (kind == _KINDS.index("graph")) | (plain(activities["graph"])[row] != 0)
    is_opaque |= is_kernel & are_signalling(tables, names)
    stream_of_launch = graphs.stream_of_launch(correlation[row])
    stream = np.where(stream_of_launch >= 0, stream_of_launch, stream)
    first, count = touches_of(used, call)
    count[is_opaque] = 0
    is_copy = kind == _KINDS.index("memcpy")
    code = np.select(
        [stream == 0, is_opaque, is_copy, kind == _KINDS.index("memset")],
        [Code.SYNCHRONIZE_ALL, Code.WAIT_FOR_UNKNOWN, Code.COPY, Code.MEMSET],
        Code.LAUNCH,
    )
    bits = np.where(_are_synchronous(tables, call), CopyBit.SYNCHRONOUS, 0)
    bits |= np.where(is_copy, _copies(activities, row), 0)
    rows.add(
        begin[call],
        code,
        device=plain(activities["device"])[row],
        stream=stream,
        object=bits,
        touches=np.where(code == Code.SYNCHRONIZE_ALL, 0, count),
        first_touch=first,
        activity=row,
        call=call,
    )


def _copies(activities: pa.Table, row: np.ndarray) -> np.ndarray:
    """Return what the engine takes of copies between one device and the host, as bits.

    Copies of unknown kind are taken as copies between host buffers, which the host waits for.
    """
    kind = codes(activities["copy_kind"], _COPY_KINDS)[row]
    known = [kind == each for each in _COPIES]
    bits = np.select(known, list(_COPIES.values()), HazardCopy.HOST_TO_HOST)
    is_pageable = codes(activities["host_memory"], _MEMORIES)[row] == _MEMORIES.index("pageable")
    return bits | np.where(is_pageable, CopyBit.PAGEABLE, 0)


def _add_peer_copies(
    rows: OperationRows, tables: Tables, used: Touches, copies: PeerCopies
) -> None:
    """Add the copies between GPUs, in the streams that they were issued on.

    One in a default stream is in those of both GPUs for the engine, whichever is current. A copy
    of an older recording that ran in a stream of the driver's own may have been issued on any.
    """
    streams = tables["streams"]
    ids, kinds = plain(streams["id"]), codes(streams["kind"], _STREAM_KINDS)
    default = ids[kinds == _STREAM_KINDS.index("default")]
    known = ids[plain(streams["handle"]) != NO_HANDLE]
    is_default = np.isin(copies.stream, default)
    is_known = np.isin(copies.stream, known)
    peer = np.where(copies.device == copies.source, copies.destination, copies.source)
    first, count = touches_of(used, copies.call)
    rows.add(
        plain(tables["api_calls"]["time"])[copies.call],
        np.where(is_known, Code.COPY, Code.SYNCHRONIZE_ALL),
        device=copies.device,
        stream=np.where(is_known, copies.stream, 0),
        object=_COPIES[_PEER] | np.where(is_default, peer + 1, 0) * CopyBit.PEER,
        touches=np.where(is_known, count, 0),
        first_touch=first,
        activity=copies.activity,
        call=copies.call,
    )


def add_collectives(
    rows: OperationRows, tables: Tables, used: Touches, kernels: np.ndarray
) -> None:
    """Add the accesses of collectives; that other ranks order them follows as unknown."""
    activities = tables["activities"]
    stream = plain(activities["stream"])[kernels]
    is_known = (stream != 0) & (plain(activities["graph"])[kernels] == 0)
    kernels, stream = kernels[is_known], stream[is_known]
    call = calls_of(tables, plain(activities["correlation"])[kernels])
    first, count = touches_of(used, call)
    rows.add(
        plain(tables["api_calls"]["time"])[call],
        Code.LAUNCH,
        device=plain(activities["device"])[kernels],
        stream=stream,
        touches=count,
        first_touch=first,
        activity=kernels,
        call=call,
    )


def _are_synchronous(tables: Tables, call: np.ndarray) -> np.ndarray:
    """Return whether each call is a synchronous copy or memset, by its name."""
    names = np.append(plain(tables["api_calls"]["name"]), 0)[call]
    distinct = np.unique(names[call >= 0])
    is_set = re.compile(r"cu(da)?Mem(cpy|set)(?!.*Async)")
    known = [
        kind_of_name(text) == CallKind.MEMCPY or bool(is_set.match(text))
        for text in texts(tables, distinct)
    ]
    found: np.ndarray = np.isin(names, distinct[known]) & (call >= 0)
    return found
