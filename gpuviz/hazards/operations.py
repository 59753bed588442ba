"""The operations of a recording, as the hazard engine takes them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpuviz.analysis.touches import Touches, alive
from gpuviz.data.codes import Code
from gpuviz.data.columns import codes, plain
from gpuviz.data.first_rows import first_rows
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.tables import ACTIONS, DICTIONARIES, Tables
from gpuviz.hazards.accesses import accesses, are_host_written, are_pinned, are_private
from gpuviz.hazards.collectives import with_collectives
from gpuviz.hazards.host_accesses import TABLE as HOST_ACCESSES
from gpuviz.hazards.host_accesses import with_host_accesses
from gpuviz.hazards.issued_waits import add_host_functions, add_synchronizations
from gpuviz.hazards.issued_work import add_activities, add_collectives
from gpuviz.hazards.known_graphs import GRAPH_CALLS, KnownGraphs
from gpuviz.hazards.operation_rows import Columns, OperationRows, touches_of
from gpuviz.hazards.waited_frees import awaited_streams

_STREAM_KINDS = DICTIONARIES["streams", "kind"]
# Numbers of events that captures record, apart from all others.
_CAPTURED_EVENTS = 1 << 31


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

    columns: Columns
    accesses: Columns
    blocks: Columns
    stream: np.ndarray
    activity: np.ndarray
    event: np.ndarray
    call: np.ndarray
    graph_call: np.ndarray
    host_access: np.ndarray


def operations(recording: RecordingData, used: Touches) -> Operations:
    """Return the operations of a recording of one process.

    What is not understood counts as a synchronization, so that nothing follows from it: work that
    came from unknown streams or from graphs with unknown nodes, and waits for events that were
    recorded before the recording.
    """
    tables = recording.tables
    rows = OperationRows()
    graphs = KnownGraphs(tables)
    used, kernels = with_collectives(tables, used)
    used, accessed = with_host_accesses(tables, used)
    _add_memory(rows, recording, used)
    add_collectives(rows, tables, used, kernels)
    add_activities(rows, tables, used, graphs)
    add_synchronizations(rows, tables, graphs)
    add_host_functions(rows, tables)
    _add_graphs(rows, tables, used, graphs)
    _add_host_accesses(rows, tables, used, accessed)
    found = rows.ordered()
    return _with_streams(found, tables, used)


def _add_memory(rows: OperationRows, recording: RecordingData, used: Touches) -> None:
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


def _add_host_accesses(
    rows: OperationRows, tables: Tables, used: Touches, accessed: np.ndarray
) -> None:
    first, count = touches_of(used, tables["api_calls"].num_rows + np.arange(len(accessed)))
    rows.add(
        plain(tables[HOST_ACCESSES]["time"])[accessed],
        Code.HOST_ACCESS,
        touches=count,
        first_touch=first,
        host_access=accessed,
    )


def _add_graphs(rows: OperationRows, tables: Tables, used: Touches, graphs: KnownGraphs) -> None:
    calls = tables["api_calls"]
    begin, correlations = plain(calls["time"]), plain(calls["correlation"])
    call = first_rows(correlations, graphs.columns["correlation"])
    time, stream = begin[call], graphs.columns["stream"]
    number, kind = graphs.columns["graph"], graphs.columns["kind"]

    def add(chosen: np.ndarray, code: Code, **columns: Any) -> None:
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
    first, count = touches_of(used, call[nodes])
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


def _with_streams(found: Columns, tables: Tables, used: Touches) -> Operations:
    """Return operations on streams that are numbered from 0, the legacy stream, and created."""
    numbers, place = np.unique(found["stream"], return_inverse=True)
    device = _devices(found, tables, numbers, place)
    of_no_device = (found["code"] == Code.SYNCHRONIZE_DEVICE) & (device < 0)
    found["code"][of_no_device] = Code.SYNCHRONIZE_ALL
    device = np.maximum(device, 0)
    size = len(found["code"])
    last = np.zeros(len(numbers), np.int64)
    last[place] = np.arange(size)
    number_of, extra = _lives_of_streams(tables, numbers, last, device)
    after, code, stream_of, kinds, devices_of = extra.T
    order = np.argsort(np.concatenate([np.arange(size), after + 0.5]), kind="stable")

    def merged(name: str, own: np.ndarray | int) -> np.ndarray:
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
    rows = (merged(name, -1) for name in ("event", "call", "graph_call", "host_access"))
    stream = merged("stream_id", 0)
    return Operations(columns, taken, _blocks(tables, used), stream, activity, *rows)


def _of_streams(tables: Tables, column: str) -> dict[int, int]:
    """Return the values of a column of ``streams``, or the codes of their kinds, by id."""
    streams = tables["streams"]
    of_kind = column == "kind"
    values = codes(streams["kind"], _STREAM_KINDS) if of_kind else plain(streams[column])
    return dict(zip(plain(streams["id"]).tolist(), values.tolist(), strict=True))


def _devices(found: Columns, tables: Tables, ids: np.ndarray, place: np.ndarray) -> np.ndarray:
    """Return the device of each operation: that of its stream, if it is known.

    Args:
        found: The operations.
        tables: The tables of the recording.
        ids: Ids of ``streams``.
        place: For each operation, the place of its stream among them.
    """
    device_of = _of_streams(tables, "device")
    devices = np.array([device_of.get(stream, -1) for stream in ids.tolist()], np.int64)
    return np.where(devices[place] >= 0, devices[place], found["device"])


def _lives_of_streams(
    tables: Tables, ids: np.ndarray, last: np.ndarray, device: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of each stream, and the operations that create and destroy them.

    Args:
        tables: The tables of the recording.
        ids: Ids of ``streams``.
        last: The last operation of each of them.
        device: The device of each operation.

    Returns:
        Of the operations, a row each: the one that it follows, or -1, its code, the number of its
        stream, whether that is a blocking one (1) or not (2) if it is created, and its device.
    """
    kind_of, ended = _of_streams(tables, "kind"), _of_streams(tables, "destroyed")
    number_of = np.zeros(len(ids), np.int64)
    lives: list[tuple[int, int, int, int, int]] = []
    for index, stream in enumerate(ids.tolist()):
        kind = _STREAM_KINDS[kind_of.get(stream, 0)]
        if stream == 0 or kind == "default":
            continue
        number_of[index] = index + 1
        # A stream of unknown kind counts as a blocking one, which is ordered after more.
        is_blocking = kind != "non_blocking"
        where = int(device[last[index]])
        lives.append((-1, Code.CREATE_STREAM, index + 1, 1 if is_blocking else 2, where))
        if ended.get(stream, -1) >= 0:
            lives.append((int(last[index]), Code.DESTROY_STREAM, index + 1, 0, where))
    return number_of, np.array(lives, np.int64).reshape(-1, 5)


def _blocks(tables: Tables, used: Touches) -> Columns:
    blocks = used.blocks
    return {
        "address": np.append(blocks.address, 0).astype(np.uint64),
        "bytes": np.append(blocks.size, 0).astype(np.uint64),
        "is_pinned": np.append(are_pinned(tables, used), 0).astype(np.uint8),
        "is_host_written": np.append(are_host_written(tables, used), 0).astype(np.uint8),
        "is_private": np.append(are_private(tables, used), 0).astype(np.uint8),
    }
