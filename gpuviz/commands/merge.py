"""``gpuviz merge``: the recordings of several processes as one."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from gpuviz.analysis.processes import device_names
from gpuviz.commands.output import say
from gpuviz.commands.progress import reading_all, writing
from gpuviz.formats.output_path import check_output
from gpuviz.merging.merge import merged
from gpuviz.merging.sources import files, loaded
from gpuviz.quantities import format_bytes, format_duration
from gpuviz.recording import Recording


def run(sources: tuple[Path, ...], *, output: Path, force: bool) -> None:
    """Merge recordings, write the result, and print whose memory is whose.

    Raises:
        GpuvizError: There is no recording, one cannot be merged, or the output cannot be written.
        OSError: A file cannot be read.
    """
    check_output(output, force=force)
    paths = [path for source in sources for path in files(source)]
    recording = Recording.of(merged(reading_all(loaded(paths), len(paths))))
    with writing(output):
        recording.save(output, overwrite=force)
    for line in _lines(recording):
        say(line)
    for note in recording.notes:
        say(f"note: {note}")
    say(f"Wrote {output}")


def _lines(recording: Recording) -> Iterator[str]:
    """Yield a line for each GPU, and below it one for each process that used it."""
    names = device_names(recording)
    rows = {row["id"]: row for row in recording.tables["devices"].to_pylist()}
    gpus: dict[str, list[int]] = defaultdict(list)
    for device, row in rows.items():
        gpus[row["uuid"] or f"{device}"].append(device)
    errors = {device: each.clock_error for each in recording.processes for device in each.devices}
    for uuid, devices in gpus.items():
        known = f" ({uuid})" if rows[devices[0]]["uuid"] else ""
        yield f"{rows[devices[0]]['name'] or 'GPU'}{known}"
        for device in devices:
            stats = recording.memory_stats(device)
            peak, reserved = (
                format_bytes(stats[f"{name}_bytes.all.peak"]) for name in ("allocated", "reserved")
            )
            yield (
                f"  {names.get(device, device)}: peak {peak} allocated, {reserved} reserved"
                f"{_error(errors.get(device, 0))}"
            )


def _error(error: int) -> str:
    if not error:
        return ""
    return ", times unaligned" if error < 0 else f", times within {format_duration(error)}"
