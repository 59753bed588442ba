"""The operations of a recording, as the hazard engine takes them."""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gpuviz.analysis.calls import kind_of_name
from gpuviz.analysis.launches import calls_of
from gpuviz.analysis.peer_copies import PeerCopies, peer_copies
from gpuviz.analysis.touches import alive
from gpuviz.data.codes import CallKind, Code, CopyBit, HazardCopy
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.stream_handle import NO_HANDLE
from gpuviz.data.strings import texts
from gpuviz.data.tables import ACTIONS, DICTIONARIES
from gpuviz.hazards.accesses import accesses, are_host_written, are_pinned, are_private
from gpuviz.hazards.collectives import with_collectives
from gpuviz.hazards.host_accesses import TABLE as HOST_ACCESSES
from gpuviz.hazards.host_accesses import with_host_accesses
from gpuviz.hazards.host_functions import times_of_functions
from gpuviz.hazards.known_graphs import GRAPH_CALLS, KnownGraphs, are_signalling
from gpuviz.hazards.queries import unsuccessful
from gpuviz.hazards.waited_frees import awaited_streams

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from numpy.typing import NDArray

    from gpuviz.analysis.touches import Touches
    from gpuviz.data.recording_data import RecordingData

    Tables = Mapping[str, pa.Table]
    Columns = dict[str, NDArray[Any]]

_KINDS = DICTIONARIES["activities", "kind"]
_COPY_KINDS = DICTIONARIES["activities", "copy_kind"]
_MEMORIES = DICTIONARIES["activities", "host_memory"]
_STREAM_KINDS = DICTIONARIES["streams", "kind"]
_SYNCHRONIZATIONS = DICTIONARIES["synchronizations", "kind"]
_RANGE = "range"
# Between devices copies are as on one.
_COPIES = {
    _COPY_KINDS.index("host_to_device"): HazardCopy.HOST_TO_DEVICE,
    _COPY_KINDS.index("device_to_host"): HazardCopy.DEVICE_TO_HOST,
    _COPY_KINDS.index("device_to_device"): HazardCopy.DEVICE_TO_DEVICE,
    _COPY_KINDS.index("peer_to_peer"): HazardCopy.DEVICE_TO_DEVICE,
}
_PEER = _COPY_KINDS.index("peer_to_peer")
# Numbers of events that captures record, and of those that stand for what functions of the host
# know, apart from all others.
_CAPTURED_EVENTS = 1 << 31
_HOST_FUNCTIONS = 1 << 30


@dataclass(frozen=True, eq=False)
class Operations:
    """The operations of a process, in the order in which the host issued them.

    Attributes:
        columns: What the engine takes.
        accesses: The accesses of the operations, one after the other.
        blocks: The blocks of all devices.
        stream: For each operation, its id in ``streams``; 0 if it has none or it is unknown.
        activity: For each operation, the row of ``activities``, or -1.
        event: For each operation, the row of ``memory_events``, or -1.
        call: For each operation, the row of ``api_calls``, or -1.
        graph_call: For each operation, the row of ``graph_calls``, or -1.
        host_access: For each operation, the row of ``host_accesses``, or -1.
    """

    columns: "Columns"
    accesses: "Columns"
    blocks: "Columns"
    stream: "NDArray[Any]"
    activity: "NDArray[Any]"
    event: "NDArray[Any]"
    call: "NDArray[Any]"
    graph_call: "NDArray[Any]"
    host_access: "NDArray[Any]"


class _Rows:
    """Operations in any order."""

    def __init__(self) -> None:
        self.parts: list[dict[str, Any]] = []

    def add(self, time: "NDArray[Any]", code: Any, **columns: Any) -> None:
        """Add operations; missing columns are 0, and missing rows -1."""
        part = {"time": time, "code": code, "device": 0, "stream": 0, "object": 0, "touches": 0}
        part |= {"first_touch": 0, "activity": -1, "event": -1, "call": -1}
        part |= {"graph_call": -1, "host_access": -1} | columns
        self.parts.append({name: np.broadcast_to(each, len(time)) for name, each in part.items()})

    def ordered(self) -> "Columns":
        """Return the columns, ordered by time.

        At one time, queries and accesses of the host come first, then memory events in their
        order, then calls.
        """
        columns = {
            name: np.concatenate([np.asarray(part[name], np.int64) for part in self.parts])
            for name in self.parts[0]
        }
        rank = np.where(columns["call"] >= 0, np.iinfo(np.int64).max, columns["event"])
        order = np.lexsort((rank, columns["time"]))
        return {name: column[order] for name, column in columns.items()}


def operations(recording: "RecordingData", used: "Touches") -> Operations:
    """Return the operations of a recording of one process.

    What is not understood counts as a synchronization, so that nothing follows from it: work that
    came from unknown streams or from graphs with unknown nodes, and waits for events that were
    recorded before the recording.
    """
    tables = recording.tables
    rows = _Rows()
    graphs = KnownGraphs(tables)
    used, kernels = with_collectives(tables, used)
    used, accessed = with_host_accesses(tables, used)
    _add_memory(rows, recording, used)
    _add_collectives(rows, tables, used, kernels)
    _add_activities(rows, tables, used, graphs)
    _add_synchronizations(rows, tables, graphs)
    _add_host_functions(rows, tables)
    _add_graphs(rows, tables, used, graphs)
    _add_host_accesses(rows, tables, used, accessed)
    found = rows.ordered()
    return _with_streams(found, tables, used)


def _add_memory(rows: _Rows, recording: "RecordingData", used: "Touches") -> None:
    events, blocks = recording.tables["memory_events"], used.blocks
    times = plain(events["time"])
    freed = np.flatnonzero(blocks.free < len(times))
    rows.add(
        blocks.begin,
        Code.ALLOCATE,
        device=blocks.device,
        stream=blocks.stream,
        object=np.arange(len(blocks)),
        event=blocks.alloc,
    )
    unknown = freed[(blocks.stream[freed] == 0) & ~are_pinned(recording.tables, used)[freed]]
    rows.add(blocks.end[unknown], Code.SYNCHRONIZE_ALL, event=blocks.free[unknown])
    action, device = codes(events["action"], ACTIONS), plain(events["device"])
    shared = np.flatnonzero(action == ACTIONS.index("record_stream"))
    owner = alive(blocks, plain(events["address"])[shared], times[shared])
    rows.add(
        times[shared],
        Code.RECORD_STREAM,
        device=device[shared],
        stream=plain(events["stream"])[shared],
        object=np.where(owner < 0, len(blocks), owner),
        event=shared,
    )
    named, awaited = awaited_streams(recording.tables, used)
    rows.add(
        blocks.end[named], Code.RECORD_STREAM,
        device=blocks.device[named], stream=awaited, object=named, event=blocks.free[named],
    )  # fmt: skip
    released = [ACTIONS.index(name) for name in ("segment_free", "segment_unmap")]
    unmapped = np.flatnonzero(np.isin(action, released))
    rows.add(times[unmapped], Code.SYNCHRONIZE_DEVICE, device=device[unmapped])
    rows.add(blocks.end[freed], Code.FREE, object=freed, event=blocks.free[freed])
    foreign = recording.tables["memory_operations"]
    kinds = DICTIONARIES["memory_operations", "operation"]
    is_release = codes(foreign["operation"], kinds) == kinds.index("release")
    is_release &= plain(foreign["stream"]) == 0
    rows.add(plain(foreign["time"])[is_release], Code.SYNCHRONIZE_ALL)


def _add_activities(rows: _Rows, tables: "Tables", used: "Touches", graphs: KnownGraphs) -> None:
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
    copy_kind = codes(activities["copy_kind"], _COPY_KINDS)[row]
    stream = plain(activities["stream"])[row]
    names = plain(activities["name"])[row]
    is_kernel = kind == _KINDS.index("kernel")
    is_opaque = (kind == _KINDS.index("graph")) | (plain(activities["graph"])[row] != 0)
    is_opaque |= is_kernel & are_signalling(tables, names)
    stream_of_launch = graphs.stream_of_launch(correlation[row])
    stream = np.where(stream_of_launch >= 0, stream_of_launch, stream)
    first, count = _touches_of(used, call)
    count[is_opaque] = 0
    is_synchronous = _are_synchronous(tables, call)
    is_copy = kind == _KINDS.index("memcpy")
    code = np.select(
        [stream == 0, is_opaque, is_copy, kind == _KINDS.index("memset")],
        [Code.SYNCHRONIZE_ALL, Code.WAIT_FOR_UNKNOWN, Code.COPY, Code.MEMSET],
        Code.LAUNCH,
    )
    pageable = codes(activities["host_memory"], _MEMORIES)[row] == _MEMORIES.index("pageable")
    bits = np.where(is_synchronous, CopyBit.SYNCHRONOUS, 0)
    # Copies of unknown kind are taken as copies between host buffers, which the host waits for.
    copy = np.select(
        [copy_kind == each for each in _COPIES], list(_COPIES.values()), HazardCopy.HOST_TO_HOST
    )
    copy_bits = copy | bits | np.where(pageable, CopyBit.PAGEABLE, 0)
    rows.add(
        begin[call],
        code,
        device=plain(activities["device"])[row],
        stream=stream,
        object=np.where(is_copy, copy_bits, bits),
        touches=np.where(code == Code.SYNCHRONIZE_ALL, 0, count),
        first_touch=first,
        activity=row,
        call=call,
    )


def _add_peer_copies(rows: _Rows, tables: "Tables", used: "Touches", copies: PeerCopies) -> None:
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
    first, count = _touches_of(used, copies.call)
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


def _add_collectives(
    rows: _Rows, tables: "Tables", used: "Touches", kernels: "NDArray[Any]"
) -> None:
    """Add the accesses of collectives; that other ranks order them follows as unknown."""
    activities = tables["activities"]
    stream = plain(activities["stream"])[kernels]
    is_known = (stream != 0) & (plain(activities["graph"])[kernels] == 0)
    kernels, stream = kernels[is_known], stream[is_known]
    call = calls_of(tables, plain(activities["correlation"])[kernels])
    first, count = _touches_of(used, call)
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


def _add_host_accesses(
    rows: _Rows, tables: "Tables", used: "Touches", accessed: "NDArray[Any]"
) -> None:
    first, count = _touches_of(used, tables["api_calls"].num_rows + np.arange(len(accessed)))
    rows.add(
        plain(tables[HOST_ACCESSES]["time"])[accessed],
        Code.HOST_ACCESS,
        touches=count,
        first_touch=first,
        host_access=accessed,
    )


def _touches_of(used: "Touches", call: "NDArray[Any]") -> "tuple[NDArray[Any], NDArray[Any]]":
    """Return the first touch of each call, in the order of calls, and how many it has."""
    order = np.argsort(used.call, kind="stable")
    known = used.call[order]
    first: NDArray[Any] = np.searchsorted(known, call)
    last: NDArray[Any] = np.searchsorted(known, call, side="right")
    return first, last - first


def _are_synchronous(tables: "Tables", call: "NDArray[Any]") -> "NDArray[Any]":
    """Return whether each call is a synchronous copy or memset, by its name."""
    names = np.append(plain(tables["api_calls"]["name"]), 0)[call]
    distinct = np.unique(names[call >= 0])
    is_set = re.compile(r"cu(da)?Mem(cpy|set)(?!.*Async)")
    known = [
        kind_of_name(text) == CallKind.MEMCPY or bool(is_set.match(text))
        for text in texts(tables, distinct)
    ]
    found: NDArray[Any] = np.isin(names, distinct[known]) & (call >= 0)
    return found


def _add_synchronizations(rows: _Rows, tables: "Tables", graphs: KnownGraphs) -> None:
    table, calls = tables["synchronizations"], tables["api_calls"]
    kind = codes(table["kind"], _SYNCHRONIZATIONS)
    call = first_rows(plain(calls["correlation"]), plain(table["correlation"]))
    time = np.where(call >= 0, np.append(plain(calls["time"]), 0)[call], plain(table["time"]))
    device, stream = plain(table["device"]), plain(table["stream"])
    sync_id = plain(table["event_sync_id"]).astype(np.int64)

    def rows_of(name: str) -> "NDArray[Any]":
        found: NDArray[Any] = kind == _SYNCHRONIZATIONS.index(name)
        return found

    # A record without a call was made by a graph or in a capture.
    is_captured = np.isin(plain(table["correlation"]), graphs.captured)
    is_record = rows_of("event_record") & (call >= 0) & (stream != 0) & ~is_captured
    # CUPTI counts the records of all contexts of a process together: measured with two on a GPU.
    recorded = sync_id[is_record & (sync_id != 0)]
    waits = rows_of("stream_wait_event") | rows_of("event_synchronize")
    is_known = waits & np.isin(sync_id, recorded)
    numbers = np.unique(sync_id[is_known])
    event = np.searchsorted(numbers, sync_id)
    is_awaited = is_record & np.isin(sync_id, numbers)
    rows.add(
        time[is_record],
        np.where(is_awaited, Code.RECORD_EVENT, Code.LAUNCH)[is_record],
        device=device[is_record],
        stream=stream[is_record],
        object=np.where(is_awaited, event, 0)[is_record],
        call=call[is_record],
    )
    waiting = rows_of("stream_wait_event") & ~is_captured
    rows.add(
        time[waiting],
        np.select(
            [stream == 0, is_known], [Code.SYNCHRONIZE_ALL, Code.WAIT_EVENT],
            Code.WAIT_FOR_UNKNOWN,
        )[waiting],
        device=device[waiting],
        stream=stream[waiting],
        object=np.where(is_known, event, 0)[waiting],
        call=call[waiting],
    )  # fmt: skip
    is_wait = ~unsuccessful(tables, call, is_record)
    host = rows_of("event_synchronize") & is_wait
    rows.add(
        time[host],
        np.where(is_known, Code.SYNCHRONIZE_EVENT, Code.SYNCHRONIZE_ALL)[host],
        object=np.where(is_known, event, 0)[host],
        call=call[host],
    )
    is_stream = rows_of("stream_synchronize") & is_wait
    known = np.flatnonzero(is_stream & (stream != 0))
    rows.add(
        time[known],
        Code.SYNCHRONIZE_STREAM,
        device=device[known],
        stream=stream[known],
        call=call[known],
    )
    whole = rows_of("context_synchronize")
    rows.add(time[whole], Code.SYNCHRONIZE_DEVICE, device=device[whole], call=call[whole])
    unknown = is_stream & (stream == 0)
    rows.add(time[unknown], Code.SYNCHRONIZE_ALL, call=call[unknown])


def _add_host_functions(rows: _Rows, tables: "Tables") -> None:
    """Add an event before each function of the host, and that the host knows of it later."""
    call, ran = times_of_functions(tables)
    calls = tables["api_calls"]
    event = _HOST_FUNCTIONS + np.arange(len(call))
    time, stream = plain(calls["time"])[call], plain(calls["stream"])[call]
    rows.add(time, Code.RECORD_EVENT, stream=stream, object=event, call=call)
    rows.add(ran, Code.SYNCHRONIZE_EVENT, object=event)


def _add_graphs(rows: _Rows, tables: "Tables", used: "Touches", graphs: KnownGraphs) -> None:
    calls = tables["api_calls"]
    begin, correlations = plain(calls["time"]), plain(calls["correlation"])
    call = first_rows(correlations, graphs.columns["correlation"])
    time, stream = begin[call], graphs.columns["stream"]
    number, kind = graphs.columns["graph"], graphs.columns["kind"]

    def add(chosen: "NDArray[Any]", code: Code, **columns: Any) -> None:
        # Its stream is in the table `streams`, which has the device.
        known = {"stream": stream[chosen], "call": call[chosen], "graph_call": graphs.row[chosen]}
        rows.add(time[chosen], code, **known | columns)

    add(graphs.first_of_captures, Code.BEGIN_CAPTURE)
    for name, code in (
        ("event_record", Code.RECORD_EVENT),
        ("stream_wait_event", Code.WAIT_EVENT),
    ):
        chosen = np.flatnonzero(kind == GRAPH_CALLS.index(name))
        add(chosen, code, object=_CAPTURED_EVENTS + graphs.event[chosen])
    nodes = np.flatnonzero(np.isin(kind, graphs.node_kinds))
    first, count = _touches_of(used, call[nodes])
    add(nodes, Code.NODE, object=graphs.first_graph[nodes], touches=count, first_touch=first)
    origin = stream[graphs.first_of_captures]
    add(graphs.last_of_captures, Code.END_CAPTURE, object=graphs.first_graphs, stream=origin)
    for last, graph in graphs.other_graphs:
        add(np.array([last]), Code.INSTANTIATE, object=graph)
    launches = np.flatnonzero(kind == GRAPH_CALLS.index("launch"))
    activity = first_rows(
        plain(tables["activities"]["correlation"]), graphs.columns["correlation"][launches]
    )
    add(launches, Code.LAUNCH_GRAPH, object=number[launches], activity=activity)


def _with_streams(found: "Columns", tables: "Tables", used: "Touches") -> Operations:
    """Return operations on streams that are numbered from 0, the legacy stream, and created."""
    streams = tables["streams"]
    kind_of, ended, device_of = (
        dict(zip(plain(streams["id"]).tolist(), values.tolist(), strict=True))
        for values in (
            codes(streams["kind"], _STREAM_KINDS),
            plain(streams["destroyed"]),
            plain(streams["device"]),
        )
    )
    numbers, place = np.unique(found["stream"], return_inverse=True)
    number_of = np.zeros(len(numbers), np.int64)
    devices = np.array([device_of.get(stream, -1) for stream in numbers.tolist()], np.int64)
    device = np.where(devices[place] >= 0, devices[place], found["device"])
    of_no_device = (found["code"] == Code.SYNCHRONIZE_DEVICE) & (device < 0)
    found["code"][of_no_device] = Code.SYNCHRONIZE_ALL
    device = np.maximum(device, 0)
    size = len(found["code"])
    last = np.zeros(len(numbers), np.int64)
    last[place] = np.arange(size)
    extra: list[tuple[int, int, int, int, int]] = []
    for index, stream in enumerate(numbers.tolist()):
        kind = _STREAM_KINDS[kind_of.get(stream, 0)]
        if stream == 0 or kind == "default":
            continue
        number_of[index] = index + 1
        # A stream of unknown kind counts as a blocking one, which is ordered after more.
        is_blocking = kind != "non_blocking"
        where = int(device[last[index]])
        extra.append((-1, Code.CREATE_STREAM, index + 1, 1 if is_blocking else 2, where))
        if ended.get(stream, -1) >= 0:
            extra.append((int(last[index]), Code.DESTROY_STREAM, index + 1, 0, where))
    after, code, stream_of, kinds, devices_of = np.array(extra, np.int64).reshape(-1, 5).T
    order = np.argsort(np.concatenate([np.arange(size), after + 0.5]), kind="stable")

    def merged(name: str, own: "NDArray[Any] | int") -> "NDArray[Any]":
        renewed = {"stream": number_of[place], "device": device, "stream_id": found["stream"]}
        values = renewed[name] if name in renewed else found[name]
        joined = np.concatenate([values, np.broadcast_to(own, len(after))])[order]
        return np.ascontiguousarray(joined)

    count, first = merged("touches", 0), merged("first_touch", 0)
    columns: Columns = {
        "code": merged("code", code).astype(np.uint8),
        "stream": merged("stream", stream_of).astype(np.uint32),
        "device": merged("device", devices_of).astype(np.uint16),
        "object": merged("object", kinds).astype(np.uint32),
        "accesses": count.astype(np.uint32),
    }
    activity = merged("activity", -1)
    taken = accesses(tables, used, activity, first, count)
    blocks = used.blocks
    sizes: Columns = {
        "address": np.append(blocks.address, 0).astype(np.uint64),
        "bytes": np.append(blocks.size, 0).astype(np.uint64),
        "is_pinned": np.append(are_pinned(tables, used), 0).astype(np.uint8),
        "is_host_written": np.append(are_host_written(tables, used), 0).astype(np.uint8),
        "is_private": np.append(are_private(tables, used), 0).astype(np.uint8),
    }
    rows = (merged(name, -1) for name in ("event", "call", "graph_call", "host_access"))
    return Operations(columns, taken, sizes, merged("stream_id", 0), activity, *rows)
