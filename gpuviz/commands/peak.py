"""``gpuviz peak``: how the peak of memory comes about, level by level."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuviz.analysis.processes import device_names
from gpuviz.commands.devices import chosen_devices
from gpuviz.commands.output import say, say_json
from gpuviz.commands.progress import reading
from gpuviz.conclusions.facts import training_peak
from gpuviz.quantities import format_bytes, format_duration

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_MOST_LINES = 5
_LEAST_SHARE = 0.01


def run(file: Path, device: int | None, *, as_json: bool) -> None:
    """Print the levels of the peak of one device, or of each, and the lines that hold it.

    Raises:
        GpuvizError: The file cannot be read as a recording, or it has no such device.
    """
    recording = reading(file)
    levels = {
        each: recording.peak_chain(each).to_pylist()
        for each in chosen_devices(recording, file, device)
    }
    if as_json:
        say_json(levels)
        return
    names = device_names(recording)
    for each, rows in levels.items():
        if len(levels) > 1:
            say(names.get(each, f"Device {each}"))
        for row in rows:
            say(_line(row))
        _echo_holders(recording, each)


def _echo_holders(recording: "Recording", device: int) -> None:
    """Print the lines of the program that hold most at the peak, with their source.

    For a training program, also the phase that reaches the peak, and what its memory holds.
    """
    peak = recording.peak(device)
    moment = peak.time_ns
    lines = recording.sites("line", at=moment, device=device).slice(0, _MOST_LINES).to_pylist()
    held = [line for line in lines if line["live_bytes"] > _LEAST_SHARE * peak.bytes]
    if not held:
        return
    say(f"\nAt the peak of allocated bytes, at {format_duration(moment)}:")
    for fact in training_peak(recording, device):
        say(fact.title)
    for line in held:
        source = f"  {line['source']}" if line["source"] else ""
        say(f"{format_bytes(line['live_bytes']):>12}  {line['site']}{source}")


def _line(row: dict[str, Any]) -> str:
    if row["bytes"] is None:
        return f"{row['level']:<18} {'unknown':>12}"
    added = f"+{format_bytes(row['added'])}" if row["added"] else ""
    return f"{row['level']:<18} {format_bytes(row['bytes']):>12} {added:>12}  {row['meaning']}"
