"""Facts about program, machine and completeness of a recording."""

from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from gpuviz.analysis.device_links import device_link_lines
from gpuviz.analysis.device_summary import DeviceSummary
from gpuviz.analysis.processes import Process, device_names
from gpuviz.analysis.stream_names import stream_names
from gpuviz.conclusions.wording import what_recording_cost
from gpuviz.data.columns import plain
from gpuviz.data.notes import deep_stacks
from gpuviz.quantities import (
    format_bytes,
    format_count,
    format_counted,
    format_duration,
    format_share,
)

if TYPE_CHECKING:
    from gpuviz.recording import Recording


def title(recording: "Recording") -> str:
    """Return the title of the page."""
    program = recording.manifest.program
    name = Path(program[0]).name if program else ""
    return f"GPU memory of {name}" if name else "GPU memory"


def name(recording: "Recording") -> str:
    """Return the name of the program."""
    program = recording.manifest.program
    return Path(program[0]).name if program else "GPU memory"


def overview(recording: "Recording", summaries: list[DeviceSummary]) -> str:
    """Return the devices, how long the recording is, and when it started."""
    start, end = recording.time_range
    processes = recording.processes
    parts = [
        format_counted(len(processes), "process", "processes") if processes else "",
        *(summary.name or summary.label for summary in summaries),
        format_duration(end - start),
        began(recording),
        _clock_error(recording),
    ]
    return " · ".join(filter(None, dict.fromkeys(parts)))


def _clock_error(recording: "Recording") -> str:
    """Return how far apart the times of several hosts may be; empty for one host."""
    errors = {each.clock_error for each in recording.processes}
    if min(errors, default=0) < 0:
        return "clocks of the hosts not aligned"
    largest = max(errors, default=0)
    return f"clocks of the hosts within {format_duration(largest)}" if largest else ""


def label(recording: "Recording") -> str:
    """Return what the page says of the recording as a whole; empty if nothing."""
    manifest = recording.manifest
    return manifest.label or ("Recorded on a simulated device." if manifest.simulated else "")


def notes(recording: "Recording") -> list[str]:
    """Return the recording's notes, without the label."""
    return [note for note in recording.notes if note != label(recording)]


def facts(recording: "Recording", summaries: list[DeviceSummary]) -> dict[str, str]:
    """Return the facts at the head of the page; unknown ones are empty."""
    return {
        "Program": " ".join(recording.manifest.program),
        "Devices": "; ".join(summary.title for summary in summaries),
        "Recorded": _recorded(recording),
        "Versions": _versions(recording),
        "Events": _events(recording),
        "Overhead": _own_cost(recording),
        "Allocator": allocator_of(recording),
        "Settings": recording.manifest.settings or "defaults",
        "Device memory": _device_memory(recording),
    }


def environment(recording: "Recording") -> dict[str, str]:
    """Return the environment of the program, and the size of the recording."""
    manifest = recording.manifest
    rows = {name: table.num_rows for name, table in recording.tables.items() if table.num_rows}
    counts = ", ".join(f"{_words(name)}: {format_count(count)}" for name, count in rows.items())
    names = stream_names(recording)
    handles = [
        f"{names[row['id']]} ({row['kind'].replace('_', ' ')}, device {row['device']})"
        for row in recording.table("streams").to_pylist()
    ]
    return {
        "Platform": manifest.platform,
        "Python": manifest.python,
        **manifest.library_versions,
        "CUDA runtime": manifest.runtime,
        "CUDA driver": manifest.driver,
        "gpuviz": manifest.gpuviz_version,
        "Device links": "; ".join(
            device_link_lines(recording.device_links, device_names(recording))
        ),
        "Streams": _some(handles),
        "Processes": "; ".join(_process(each, recording) for each in recording.processes),
        "Threads": _some(
            f"{row['name'] or 'unnamed'} ({row['id']})"
            for row in recording.table("threads").to_pylist()
        ),
        "Call stacks": deep_stacks(recording.tables),
        "Tables": counts,
    }


def _process(process: "Process[Recording]", recording: "Recording") -> str:
    """Return a process with where it ran, and its share of each GPU's memory."""
    manifest = process.recording.manifest
    place = " ".join(filter(None, (manifest.host, str(manifest.process_id or ""))))
    where = f" ({place})" if place and place != process.name else ""
    peaks = [
        f"GPU {ordinal} {format_bytes(recording.peak(device).bytes)} at its peak"
        for device, ordinal in process.devices.items()
    ]
    return f"{process.name}{where}: {', '.join(peaks) or 'no GPU'}"


def _some(names: Iterable[str], most: int = 12) -> str:
    found = list(names)
    more = f" and {format_count(len(found) - most)} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more


def _words(name: str) -> str:
    return name.replace("_", " ")


def _versions(recording: "Recording") -> str:
    manifest = recording.manifest
    versions = (
        ("gpuviz", manifest.gpuviz_version),
        *manifest.library_versions.items(),
        ("CUDA runtime", manifest.runtime),
        ("driver", manifest.driver),
        ("Python", manifest.python),
    )
    return ", ".join(f"{name} {version}" for name, version in versions if version)


def allocator_of(recording: "Recording") -> str:
    """Return what the allocator is called, and whether it was only observed."""
    name = recording.manifest.allocator_name
    if recording.manifest.allocator == "observe":
        return f"the program's own (observed): {name}" if name else "the program's own (observed)"
    return name or "gpuviz caching allocator"


def _device_memory(recording: "Recording") -> str:
    """Return the memory in use on each device by all processes; empty if not sampled."""
    samples = recording.table("device_memory")
    devices, used_bytes = plain(samples["device"]), plain(samples["used"])
    parts = []
    for device in recording.devices:
        used = used_bytes[devices == device]
        if len(used):
            bounds = [format_bytes(int(used.min())), format_bytes(int(used.max()))]
            parts.append(f"{' to '.join(dict.fromkeys(bounds))} in use on device {device}")
    return "; ".join(parts) + (", including other allocators and processes" if parts else "")


def _events(recording: "Recording") -> str:
    count = recording.table("memory_events").num_rows - recording.manifest.initial_events
    dropped = f"; {format_count(recording.dropped)} dropped" if recording.dropped else ""
    return f"{format_count(count)}{dropped}"


def _own_cost(recording: "Recording") -> str:
    in_program = recording.recording_cost()
    if in_program is not None:
        return what_recording_cost(in_program)
    cost = recording.manifest.own_cost_ns
    if not cost:
        return ""
    if recording.bounds is not None:
        return f"{format_duration(cost)} in the whole recording"
    share = cost / max(recording.duration_ns, 1)
    return f"{format_duration(cost)}, {format_share(share)} of the time"


def began(recording: "Recording") -> str:
    """Return the wall-clock time at which the recording started; empty if unknown."""
    created = recording.manifest.created
    try:
        return datetime.fromisoformat(created).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except ValueError:
        return created


def _recorded(recording: "Recording") -> str:
    start, end = recording.time_range
    duration = f"for {format_duration(end - start)}"
    if recording.bounds is not None:
        duration = f"{format_duration(end - start)} of a longer recording"
    return ", ".join(part for part in (began(recording), duration) if part)
