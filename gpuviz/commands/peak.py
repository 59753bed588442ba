"""``gpuviz peak``: how the peak of memory comes about, level by level."""

import json
from pathlib import Path
from typing import Any

import click

from gpuviz.commands.devices import chosen_devices
from gpuviz.commands.progress import reading
from gpuviz.quantities import format_bytes


def run(file: Path, device: int | None, *, as_json: bool) -> None:
    """Print the levels of the peak of one device, or of each.

    Raises:
        GpuvizError: The file cannot be read as a recording, or it has no such device.
    """
    recording = reading(file)
    levels = {
        each: recording.peak_chain(each).to_pylist()
        for each in chosen_devices(recording, file, device)
    }
    if as_json:
        click.echo(json.dumps(levels, indent=1))
        return
    for each, rows in levels.items():
        if len(levels) > 1:
            click.echo(f"Device {each}")
        for row in rows:
            click.echo(_line(row))


def _line(row: dict[str, Any]) -> str:
    if row["bytes"] is None:
        return f"{row['level']:<18} {'unknown':>12}"
    added = f"+{format_bytes(row['added'])}" if row["added"] else ""
    return f"{row['level']:<18} {format_bytes(row['bytes']):>12} {added:>12}  {row['meaning']}"
