"""The content of a Perfetto trace, read with Perfetto's own messages in plain Python."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from perfetto.protos.perfetto.trace.perfetto_trace_pb2 import Trace, TrackEvent

from tests.integration.formats.plain_trace import Slice


@dataclass
class PerfettoFile:
    """Slices, flows, counters and instants; reading fails if a slice ends that is not open.

    Attributes:
        nested: The categories of each slice inside another, the outer one first.
    """

    tracks: dict[int, Any] = field(default_factory=dict)
    slices: list[Slice] = field(default_factory=list)
    arguments: list[dict[str, Any]] = field(default_factory=list)
    flows: list[tuple[int, int]] = field(default_factory=list)
    counters: dict[tuple[str, str], list[tuple[int, int]]] = field(default_factory=dict)
    instants: list[tuple[str, int, dict[str, Any]]] = field(default_factory=list)
    nested: list[tuple[str, str]] = field(default_factory=list)

    def process(self, uuid: int) -> str:
        track = self.tracks[uuid]
        while not track.HasField("process"):
            if track.HasField("thread"):
                return "thread"
            track = self.tracks[track.parent_uuid]
        return track.process.process_name


def read(path: Path) -> PerfettoFile:
    """Return the content of a file; times equal the recording's if nothing precedes its start."""
    file = PerfettoFile()
    texts: dict[tuple[str, int], str] = {}
    events = []
    for packet in Trace.FromString(path.read_bytes()).packet:
        if packet.HasField("clock_snapshot"):
            own, trace_file = packet.clock_snapshot.clocks[:2]
            assert packet.trace_packet_defaults.timestamp_clock_id == own.clock_id
            assert packet.clock_snapshot.primary_trace_clock == trace_file.clock_id
            assert own.timestamp == trace_file.timestamp
        if packet.HasField("track_descriptor"):
            file.tracks[packet.track_descriptor.uuid] = packet.track_descriptor
        for kind, interned in packet.interned_data.ListFields():
            for each in interned:
                text = each.str.decode() if hasattr(each, "str") else each.name
                texts[kind.name, each.iid] = text
        if packet.HasField("track_event"):
            events.append((packet.timestamp, packet.track_event))
    # Sorted like Perfetto: by time, and for equal times in the order of the file.
    events.sort(key=lambda each: each[0])
    _play(file, events, texts)
    return file


def _play(file: PerfettoFile, events: list[Any], texts: dict[tuple[str, int], str]) -> None:
    open_slices: dict[int, list[tuple[int, Any]]] = {}
    launched: dict[int, int] = {}
    for time, event in events:
        stack = open_slices.setdefault(event.track_uuid, [])
        for flow in event.flow_ids:
            assert flow not in launched
            launched[flow] = time
        file.flows.extend((launched[flow], time) for flow in event.terminating_flow_ids)
        if event.type == TrackEvent.TYPE_SLICE_BEGIN:
            stack.append((time, event))
        elif event.type == TrackEvent.TYPE_SLICE_END:
            begin, opened = stack.pop()
            file.slices.append(_slice(file, begin, time, opened, texts))
            file.arguments.append(_arguments(opened, texts))
            if stack:
                around = texts["event_categories", stack[-1][1].category_iids[0]]
                file.nested.append((around, file.slices[-1].category))
        elif event.type == TrackEvent.TYPE_COUNTER:
            key = (file.process(event.track_uuid), file.tracks[event.track_uuid].name)
            file.counters.setdefault(key, []).append((time, event.counter_value))
        else:
            name = texts["event_names", event.name_iid]
            file.instants.append((name, time, _arguments(event, texts)))
    assert not any(open_slices.values())
    file.slices, file.flows = sorted(file.slices), sorted(file.flows)


def _slice(file: PerfettoFile, begin: int, end: int, event: Any, texts: Any) -> Slice:
    (category,) = (texts["event_categories", iid] for iid in event.category_iids)
    arguments = _arguments(event, texts)
    track = file.tracks[event.track_uuid]
    if "device" in arguments and category != "synchronization":
        place = (arguments["device"], arguments["stream"])
    elif track.HasField("thread"):
        place = (track.thread.tid,)
    else:
        parent = file.tracks[track.parent_uuid]
        place = (parent.thread.tid if parent.HasField("thread") else 0,)
    return Slice(category, place, begin, end - begin, texts["event_names", event.name_iid])


def _arguments(event: Any, texts: Any) -> dict[str, Any]:
    found = {}
    for each in event.debug_annotations:
        name = texts["debug_annotation_names", each.name_iid]
        if each.HasField("string_value_iid"):
            found[name] = texts["debug_annotation_string_values", each.string_value_iid]
        else:
            found[name] = each.int_value
    return found
