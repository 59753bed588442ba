"""``gpuviz stats``: the table of ``torch.cuda.memory_summary`` of a recording."""

from pathlib import Path

import click

from gpuviz.allocator.summary import memory_summary_table
from gpuviz.commands.progress import reading
from gpuviz.errors import GpuvizError


def run(file: Path, *, device: int | None, abbreviated: bool) -> None:
    """Print the statistics at the end of a recording, by device.

    Raises:
        GpuvizError: The file cannot be read as a recording, or it has no such device.
    """
    recording = reading(file)
    if not recording.devices:
        raise GpuvizError(f"{file} has no memory events, so there are no statistics.")
    if device is not None and device not in recording.devices:
        known = ", ".join(map(str, recording.devices))
        raise GpuvizError(f"{file} has no device {device}; its devices are {known}.")
    for each in recording.devices if device is None else (device,):
        stats = recording.memory_stats(each)
        click.echo(memory_summary_table(stats, each, abbreviated=abbreviated), nl=False)
