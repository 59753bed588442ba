"""``gpuviz stats``: the table of ``torch.cuda.memory_summary`` of a recording."""

from pathlib import Path

from gpuviz.allocator.summary import memory_summary_table
from gpuviz.commands.devices import chosen_devices
from gpuviz.commands.output import say
from gpuviz.commands.progress import reading


def run(file: Path, *, device: int | None, abbreviated: bool) -> None:
    """Print the statistics at the end of a recording, by device.

    Raises:
        GpuvizError: The file cannot be read as a recording, or it has no such device.
    """
    recording = reading(file)
    for each in chosen_devices(recording, file, device):
        stats = recording.memory_stats(each)
        table = memory_summary_table(stats, each, abbreviated=abbreviated)
        say(table.removesuffix("\n"))
