"""The hazards of a recording with names, lines and the fix."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from gpuviz.analysis.calls import HALVES
from gpuviz.analysis.processes import processes
from gpuviz.analysis.stream_names import stream_names
from gpuviz.analysis.stream_origins import stream_origins
from gpuviz.data.columns import plain
from gpuviz.data.conclusions import HOST_BEFORE_CALL, SIDES
from gpuviz.data.recording_data import RecordingData
from gpuviz.data.strings import texts
from gpuviz.hazards.fix import fix, fix_of_event, fix_of_host, fix_of_pinned
from gpuviz.hazards.hazard import HOST, EventInLines, Hazard, HazardOperation, shown_stream
from gpuviz.hazards.misplaced_events import event_name, event_uses
from gpuviz.hazards.pinned import EVENTS_OF
from gpuviz.hazards.workspaces import calling_routine, workspace

# Rows of `streams` by id, with what their GPUs are called.
_Streams = dict[int, dict[str, Any]]
# What is not named by its activity.
_BETWEEN = "memcpy PtoP"
_OWN_NAMES = {
    "free": "free",
    "allocate": "allocation",
    "launch_graph": "graph launch",
    "host_access": "host access",
    HOST_BEFORE_CALL: "host access",
}


def described(recording: RecordingData, table: pa.Table) -> tuple[Hazard, ...]:
    """Return the rows of the table ``hazards`` of a recording with what they refer to."""
    if not table.num_rows:
        return ()
    streams = {row["id"]: row for row in recording.tables["streams"].to_pylist()}
    gpus = _gpus(recording)
    origins = stream_origins(recording.tables)
    names = stream_names(recording)
    for number, stream in streams.items():
        origin = None if stream["named"] else origins.get(number)
        stream["name"] = names[number]
        stream["variable"] = origin.variable if origin and origin.is_one else ""
        stream["gpu"] = gpus.get(stream["device"], "")
    return tuple(_hazard(recording, row, streams) for row in table.to_pylist())


def _gpus(recording: RecordingData) -> dict[int, str]:
    """Return what the devices of each process with several devices are called in it."""
    by_process = [process.devices for process in processes(recording)]
    if not by_process:
        by_process = [{device: device for device in recording.devices}]
    return {
        device: f"GPU {ordinal}"
        for devices in by_process
        if len(devices) > 1
        for device, ordinal in devices.items()
    }


def _hazard(recording: RecordingData, row: dict[str, Any], streams: _Streams) -> Hazard:
    first, second = (_operation(recording, row, side, streams) for side in SIDES)
    is_pinned = row["memory"] == "pinned"
    events = recording.tables[EVENTS_OF[row["memory"]]]
    is_of_graph = row["second_operation"] == "launch_graph"
    # Where a graph finds a new owner of its memory, that is the first operation.
    is_own = row["other_block"] < 0 or (is_of_graph and row["first_operation"] == "allocate")
    old = row["block"] if is_own else row["other_block"]
    stack = recording.call_stacks.call_site
    freed = "" if row["free"] < 0 else stack(events["stack"][row["free"]].as_py())[0]
    first, second = _told_apart(recording, first, second)
    called = [each.site for each in recording.call_stacks.user_frames(first.stack)]
    is_freed_by_return = freed in called[1:]
    allocating = 0 if is_pinned else events["stream"][old].as_py()
    facts = ("kind", "tier", "device", "memory", "block", "other_block", "bytes", "count")
    event = _misplaced(recording, row, streams)
    ended = freed
    if is_freed_by_return:
        returning = recording.call_stacks.user_frames(first.stack)[called.index(freed, 1) - 1].name
        ended = f"{freed} when {returning} returns"
    allocated = events["stack"][old].as_py()
    routine = calling_routine(recording.call_stacks, allocated)
    change = _fix(row, (first, second), _where(streams, allocating, row["device"]), ended, routine)
    shared = workspace(recording, -1 if is_pinned else old, allocated)
    if shared is not None and row["kind"] in ("RAW", "WAR", "WAW"):
        change = shared.fix
    elif event is not None:
        change = fix_of_event(event, first, second)
    return Hazard(
        **{name: row[name] for name in facts},
        showed=bool(row["showed"]),
        first=first,
        second=second,
        allocated=stack(allocated)[0],
        freed=freed,
        fix=change,
        misplaced=event,
        is_freed_by_return=is_freed_by_return,
        workspace="" if shared is None else shared.name,
    )


def _told_apart(
    recording: RecordingData, first: HazardOperation, second: HazardOperation
) -> tuple[HazardOperation, HazardOperation]:
    """Return operations of one line with the lines that called its function, where these differ."""
    if first.site != second.site:
        return first, second
    frames = (recording.call_stacks.user_frames(each.stack) for each in (first, second))
    for one, other in zip(*frames, strict=False):
        if one != other:
            return (
                replace(first, site=one.site, source=one.source),
                replace(second, site=other.site, source=other.source),
            )
    return first, second


def _misplaced(
    recording: RecordingData, row: dict[str, Any], streams: _Streams
) -> EventInLines | None:
    """Return the event that was meant to order the operations of a hazard of two streams."""
    if row["kind"] not in ("RAW", "WAR", "WAW"):
        return None
    uses = event_uses(recording)
    first, second = (uses.issued(row[f"{side}_activity"], row[f"{side}_stream"]) for side in SIDES)
    event = None if first is None or second is None else uses.misplaced(first, second)
    if event is None:
        return None
    record, wait = (recording.call_stacks.call_site(each) for each in (event.record, event.wait))
    recorded_on = _where(streams, event.stream, row["device"])
    return EventInLines(event.mistake, event_name(wait[1]), *record, *wait, recorded_on)


def _fix(
    row: dict[str, Any],
    operations: tuple[HazardOperation, HazardOperation],
    allocating: str,
    freed: str,
    routine: str,
) -> str:
    """Return what to change, for a row of the table ``hazards``."""
    first, second = operations
    if second.is_of_host:
        return fix_of_host(first, second)
    if row["memory"] == "pinned":
        return fix_of_pinned(row["kind"], first, second, freed)
    is_of_graph = row["second_operation"] == "launch_graph"
    return fix(
        row["kind"], first, second, allocating, freed,
        device=row["device"], is_of_graph=is_of_graph, routine=routine,
    )  # fmt: skip


def _operation(
    recording: RecordingData, row: dict[str, Any], side: str, streams: _Streams
) -> HazardOperation:
    facts = ("mode", "stack", "activity", "event")
    mode, stack, activity, event = (row[f"{side}_{name}"] for name in facts)
    name = _OWN_NAMES.get(row[f"{side}_operation"], "")
    if row[f"{side}_operation"] == "node":
        name = _name_in(recording, "graph_calls", row[f"{side}_graph_call"])
    elif not name and activity >= 0:
        kind = recording.tables["activities"]["copy_kind"][activity].as_py()
        name = _BETWEEN if kind in HALVES else _name_in(recording, "activities", activity)
    site, source = recording.call_stacks.call_site(stack)
    stream = _stream(streams, row[f"{side}_stream"], row["device"])
    if name == _OWN_NAMES[HOST_BEFORE_CALL]:
        stream = {
            "name": HOST,
            "named": 0,
            "device": row["device"],
            "gpu": "",
            "variable": "",
        }
    return HazardOperation(
        name=name,
        mode=mode,
        site=site,
        source=source,
        stack=stack,
        stream=stream["name"],
        is_named=bool(stream["named"]),
        device=stream["device"],
        gpu=stream["gpu"],
        activity=activity,
        event=event,
        is_before_site=row[f"{side}_operation"] == HOST_BEFORE_CALL,
        variable=stream["variable"],
    )


def _name_in(recording: RecordingData, table: str, row: int) -> str:
    """Return the name in a row of a table, or its kind if it has none."""
    chosen = recording.tables[table].slice(row, 1)
    (text,) = texts(recording.tables, plain(chosen["name"]))
    return text or str(chosen["kind"][0].as_py())


def _where(streams: _Streams, number: int, device: int) -> str:
    """Return a stream as text, as ``where`` of an operation."""
    stream = _stream(streams, number, device)
    return shown_stream(stream["name"], stream["gpu"], is_named=bool(stream["named"]))


def _stream(streams: _Streams, number: int, device: int) -> dict[str, Any]:
    """Return the row of a stream; of one without a row or a name, what is known."""
    unnamed = {"name": f"stream {number}", "named": 0}
    nothing = {"device": device, "gpu": "", "variable": "", **unnamed}
    known = streams.get(number, nothing)
    return known if known["name"] else known | unnamed
