"""``gpuviz info``: the main facts of a recording on one screen."""

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich import box
from rich.table import Table
from rich.text import Text

from gpuviz.advice.replay.compensation import RecordingCost, compensated
from gpuviz.analysis.collectives import late_ranks
from gpuviz.analysis.device_links import DeviceLink, device_link_lines
from gpuviz.analysis.processes import device_names
from gpuviz.analysis.statistics import statistics
from gpuviz.analysis.steady_state import SteadyState, steady_of
from gpuviz.commands.output import console, say_json
from gpuviz.commands.progress import reading
from gpuviz.conclusions.numbers import busy, hidden_copies
from gpuviz.conclusions.wording import left_out, what_recording_cost
from gpuviz.data.notes import deep_stacks
from gpuviz.formats.load_limit import size_on_disk
from gpuviz.quantities import (
    format_bytes,
    format_count,
    format_counted,
    format_duration,
)
from gpuviz.report.facts import allocator_of
from gpuviz.report.other_memory import UNKNOWN

if TYPE_CHECKING:
    from rich.console import RenderableType

    from gpuviz.recording import Recording

# In the line about memory outside the allocators.
_MOST_LIBRARIES = 3
_LEVELS = ("requested_bytes", "allocated_bytes", "active_bytes", "reserved_bytes")
_MOST_RANKS = 8
_ORIGIN = {
    "recorded": "created",
    "program": "program",
    "allocator": "allocator",
    "settings": "settings",
    "gpuviz": "gpuviz_version",
    "CuPy": "cupy",
    "CUDA": "runtime",
    "driver": "driver",
    "Python": "python",
    "platform": "platform",
}


def run(file: Path, *, as_json: bool) -> None:
    """Print the facts of a recording.

    Raises:
        GpuvizError: The file cannot be read as a recording.
    """
    facts = {"file": str(file), "bytes": size_on_disk(file), **facts_of(reading(file))}
    if as_json:
        say_json(facts)
        return
    console(highlight=False, soft_wrap=True).print(*_screen(facts), sep="\n", markup=False)


def facts_of(recording: "Recording") -> dict[str, Any]:
    """Return the facts of a recording: texts, bytes, ns and counts."""
    manifest = recording.manifest
    origin = {name: getattr(manifest, name) for name in _ORIGIN.values()}
    return {
        **origin,
        "allocator": allocator_of(recording),
        "label": manifest.label,
        "notes": [*recording.notes, *filter(None, [deep_stacks(recording.tables)])],
        "complete": recording.is_complete,
        "simulated": manifest.simulated,
        "duration_ns": recording.duration_ns,
        "time_range_ns": list(recording.time_range),
        "own_cost_ns": manifest.own_cost_ns,
        "recording_cost": _recording_cost(recording),
        "dropped": manifest.dropped + manifest.dropped_activities,
        "dropped_oldest": manifest.dropped_oldest + manifest.dropped_oldest_activities,
        "actions": _actions(recording),
        "processes": [
            {"name": each.name, "host": each.recording.manifest.host}
            | {"process_id": each.recording.manifest.process_id}
            | {"devices": list(each.devices), "clock_error_ns": each.clock_error}
            for each in recording.processes
        ],
        "devices": [_device(recording, row) for row in recording.table("devices").to_pylist()],
        "device_links": [asdict(link) for link in recording.device_links],
        "host_memory": _host_memory(recording),
        "activities": _activities(recording),
        "collectives": _collectives(recording),
        "other_memory": _other_memory(recording),
        "graph_pools": recording.graph_pools().to_pylist(),
        "rows": {name: table.num_rows for name, table in sorted(recording.tables.items())},
    }


def _recording_cost(recording: "Recording") -> dict[str, int]:
    """Return what recording cost the program; empty if that is not known."""
    cost = recording.recording_cost()
    return {} if cost is None else asdict(cost)


def _actions(recording: "Recording") -> dict[str, int]:
    actions = recording.table("memory_events")["action"].cast("string")
    counts = {row["values"]: row["counts"] for row in actions.value_counts().to_pylist()}
    return dict(sorted(counts.items(), key=lambda item: -item[1]))


def _device(recording: "Recording", row: dict[str, Any]) -> dict[str, Any]:
    stats = recording.memory_stats(device=row["id"])
    label = device_names(recording).get(row["id"], f"Device {row['id']}")
    return {**row, **_levels(stats), "num_ooms": stats["num_ooms"], "label": label}


def _host_memory(recording: "Recording") -> dict[str, Any]:
    """Return the levels of pinned memory; empty if none was recorded."""
    memory = recording.host_memory
    if not memory.is_recorded:
        return {}
    stats = statistics(memory.as_device, None)
    return {**_levels(stats), "num_ooms": stats["num_ooms"]}


def _other_memory(recording: "Recording") -> dict[str, Any]:
    """Return the last sample of each device, and the libraries that allocated from CUDA.

    It is the last in which the device has all that was recorded, if there is one: a sample at the
    exit of a program may have less. ``older_ns`` of a sample is how long before the device's last
    memory event it was taken.
    """
    rows = recording.other_memory(by="time").to_pylist()
    samples = {row["device"]: row for row in rows}
    samples |= {row["device"]: row for row in rows if not _is_partly_released(row)}
    levels = recording.memory_levels
    last = dict(zip(levels["device"].to_pylist(), levels["time"].to_pylist(), strict=True))
    for device, row in samples.items():
        row["older_ns"] = max(last.get(device, 0) - row["time"], 0)
    return {"samples": list(samples.values()), "libraries": recording.other_memory().to_pylist()}


def _levels(stats: dict[str, int]) -> dict[str, dict[str, int]]:
    return {
        name: {"peak": stats[f"{name}.all.peak"], "end": stats[f"{name}.all.current"]}
        for name in _LEVELS
    }


def _activities(recording: "Recording") -> dict[str, Any]:
    """Return totals of GPU activities; empty if none were recorded."""
    if recording.table("activities").num_rows == 0:
        return {}
    kernels, copies = recording.kernels(), recording.copies()
    waits, unrecorded = recording.synchronizations(), compensated(recording)
    return {
        "kernels": sum(kernels["count"].to_pylist()),
        "copies": sum(copies["count"].to_pylist()),
        "copied_bytes": sum(copies["bytes"].to_pylist()),
        "synchronizations": sum(waits["count"].to_pylist()),
        "host_blocked_ns": sum(waits["total_ns"].to_pylist()),
        "devices": [
            {
                "device": each.device,
                "window_ns": each.window_ns,
                "busy": each.busy,
                "copies_hidden": each.kernel_copy_overlap if each.copy_ns else None,
                "steady": _steady(steady_of(unrecorded, each.device)),
            }
            for each in recording.overlap().devices
        ],
    }


def _steady(state: SteadyState) -> dict[str, Any]:
    return {"ns": state.duration_ns, "busy": state.busy, "left_out": left_out(state)}


def _collectives(recording: "Recording") -> dict[str, Any]:
    """Return who came last in the collectives of several ranks; empty if there are none."""
    rows = [row for row in recording.collectives().to_pylist() if row["ranks"] > 1]
    if not rows:
        return {}
    return {
        "count": len(rows),
        "incomplete": sum(bool(row["missing"]) for row in rows),
        "uncertain": sum(row["last_rank"] < 0 and not row["missing"] for row in rows),
        "last": [asdict(each) for each in late_ranks(rows)],
    }


def _screen(facts: dict[str, Any]) -> "Iterator[RenderableType]":
    yield Text(f"{facts['file']} ({format_bytes(facts['bytes'])})", style="bold")
    yield _origin(facts)
    events = format_counted(facts["rows"]["memory_events"], "memory event")
    lost = [
        f"{format_count(facts[name])} {what}"
        for name, what in (("dropped", "dropped"), ("dropped_oldest", "oldest discarded"))
        if facts[name]
    ]
    start, end = facts["time_range_ns"]
    yield Text(", ".join((f"{events} in {format_duration(end - start)}", *lost)))
    yield Text(
        "  " + ", ".join(f"{format_count(n)} {name}" for name, n in facts["actions"].items())
    )
    if facts["recording_cost"]:
        cost = RecordingCost(**facts["recording_cost"])
        yield Text(f"  First launch to last work: {what_recording_cost(cost)}")
    for device in facts["devices"]:
        memory = format_bytes(device["total_memory"] or 0)
        # A redacted recording has no device name.
        about = ", ".join(filter(None, (device["name"], memory)))
        yield _levels_table(f"{device['label']}: {about}", device)
    if facts["host_memory"]:
        yield _levels_table("Pinned host memory", facts["host_memory"])
    labels = {device["id"]: device["label"] for device in facts["devices"]}
    links = [DeviceLink(**each) for each in facts["device_links"]]
    for line in device_link_lines(links, labels):
        yield Text(line)
    for line in _lines_of(facts["activities"], labels):
        yield Text(line)
    for line in _lines_of_collectives(facts["collectives"]):
        yield Text(line)
    for line in _lines_of_other_memory(facts["other_memory"], labels):
        yield Text(line)
    for pool in facts["graph_pools"]:
        yield Text(_graph_pool(pool, labels))
    nouns = ("stream", "pool", "stack", "thread", "range")
    yield Text(", ".join(format_counted(facts["rows"][f"{noun}s"], noun) for noun in nouns))


def _lines_of_other_memory(other: dict[str, Any], labels: dict[int, str]) -> Iterator[str]:
    for row in other["samples"]:
        libraries = [
            (each["current"], each["library"] or UNKNOWN)
            for each in sorted(other["libraries"], key=lambda each: -each["current"])
            if each["device"] == row["device"] and each["current"]
        ]
        named, others = libraries[:_MOST_LIBRARIES], libraries[_MOST_LIBRARIES:]
        if others:
            total = sum(size for size, _ in others)
            named.append((total, format_counted(len(others), "other library", "other libraries")))
        parts = [
            f"{format_bytes(row['recorded'])} by the recorded allocators",
            *(f"{format_bytes(size)} by {name}" for size, name in named),
            f"{format_bytes(row['rest'])} by CUDA contexts, other processes and what was before",
        ]
        label = labels.get(row["device"], f"Device {row['device']}")
        yield f"{label}: {format_bytes(row['used'])} in use {_when(row)}: {', '.join(parts)}"


def _when(sample: dict[str, Any]) -> str:
    """Return when a sample of a device's memory was taken, and whether it can be compared."""
    when = "at the end"
    if sample["older_ns"]:
        when = f"{format_duration(sample['older_ns'])} before the last memory event"
    if _is_partly_released(sample):
        when += ", while some of it was being released or allocated"
    return when


def _is_partly_released(sample: dict[str, Any]) -> bool:
    """Return whether a device has less in use than was recorded, as while it is released."""
    return bool(sample["used"] < sample["recorded"] + sample["libraries"])


def _graph_pool(pool: dict[str, Any], labels: dict[int, str]) -> str:
    graphs = format_counted(pool["graphs"], "graph")
    replays = "" if pool["replays"] is None else f", {format_counted(pool['replays'], 'replay')}"
    memory = f"{format_bytes(pool['reserved'])} reserved, {format_bytes(pool['allocated'])} in use"
    device = labels.get(pool["device"], f"Device {pool['device']}")
    return f"{device}, pool {pool['pool']}: {graphs}{replays}; {memory} at the end"


def _origin(facts: dict[str, Any]) -> "RenderableType":
    grid = Table.grid(padding=(0, 1))
    for title, name in _ORIGIN.items():
        value = facts[name]
        if value:
            grid.add_row(Text(title, "dim"), Text(value if name != "program" else " ".join(value)))
    for note in facts["notes"]:
        grid.add_row(Text("note", "yellow"), Text(note))
    return grid


def _levels_table(title: str, levels: dict[str, Any]) -> "RenderableType":
    table = Table(
        title=Text(title, "bold"),
        box=box.SIMPLE_HEAD,
        show_edge=False,
        title_justify="left",
        title_style="bold",
    )
    table.add_column("")
    for heading in ("peak", "at the end"):
        table.add_column(heading, justify="right")
    for name in _LEVELS:
        peak, end = (format_bytes(levels[name][when]) for when in ("peak", "end"))
        table.add_row(name.removesuffix("_bytes"), peak, end)
    if levels["num_ooms"]:
        table.add_row("out of memory", format_counted(levels["num_ooms"], "time"), "")
    return table


def _lines_of(activities: dict[str, Any], labels: dict[int, str]) -> Iterator[str]:
    if not activities:
        return
    yield f"Kernels: {format_count(activities['kernels'])}"
    copied = format_bytes(activities["copied_bytes"])
    yield f"Copies: {format_count(activities['copies'])}, {copied}"
    blocked = format_duration(activities["host_blocked_ns"])
    count = format_count(activities["synchronizations"])
    yield f"Synchronizations: {count}, blocking the host for {blocked}"
    for each in activities["devices"]:
        share, steady = each["copies_hidden"], each["steady"]
        label = labels.get(each["device"], f"Device {each['device']}")
        period = f"of {format_duration(steady['ns'])}"
        shown = [busy(steady["busy"], f"{period} {steady['left_out']}".rstrip())]
        shown += [] if share is None else [hidden_copies(share, None)]
        yield f"{label}: {'; '.join(map(str, shown))}"


def _lines_of_collectives(collectives: dict[str, Any]) -> Iterator[str]:
    if not collectives:
        return
    unknown = [
        f"{format_count(collectives[name])} {text}"
        for name, text in (
            ("incomplete", "without all ranks"),
            ("uncertain", "whose last rank is not certain"),
        )
        if collectives[name]
    ]
    yield ", ".join((f"Collectives: {format_count(collectives['count'])}", *unknown))
    for each in collectives["last"][:_MOST_RANKS]:
        waited = f", the others waited {format_duration(each['waited_ns'])} for it"
        yield (
            f"  {each['name']}: last in {format_count(each['count'])}, "
            f"{format_duration(each['late_ns'])} after the others{waited * (each['waited_ns'] > 0)}"
        )
