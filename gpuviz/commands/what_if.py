"""``gpuviz what-if``: a recorded program's memory under other settings of the allocator."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuviz._core import DeviceError
from gpuviz.analysis.recommendation import name_of, recommendation
from gpuviz.commands.output import say, say_json
from gpuviz.commands.progress import reading, writing
from gpuviz.commands.quantities import parse_size
from gpuviz.errors import GpuvizError
from gpuviz.formats.output_path import check_output
from gpuviz.quantities import (
    format_bytes,
    format_count,
    format_counted,
    format_duration,
    format_share,
)

if TYPE_CHECKING:
    from gpuviz.recording import Recording

_UNKNOWN = "-"
_HEADER = ("settings", "reserved", "allocated", "unused", "failed", "retries", "driver calls")


def run(  # noqa: PLR0913 - a value for each option
    file: Path,
    *,
    settings: tuple[str, ...],
    capacity: str | None,
    device: int | None,
    as_json: bool,
    output: Path | None,
    force: bool,
) -> None:
    """Print a row for the recording and each setting, and write the recording of one.

    Raises:
        GpuvizError: The file cannot be read as a recording, a setting or the device is unknown, the
            capacity is no size, or the output cannot be written.
    """
    room = None if capacity is None else parse_size(capacity, "--capacity")
    if output is not None:
        if len(settings) != 1:
            raise GpuvizError("--output writes the recording of one SETTING; name exactly one.")
        check_output(output, force=force)
    recording = reading(file)
    try:
        rows = recording.what_if(settings or None, capacity=room, device=device).to_pylist()
        replayed = None if output is None else _replayed(recording, settings[0], room)
    except (ValueError, DeviceError) as error:
        raise GpuvizError(str(error)) from None
    if as_json:
        say_json(rows)
    else:
        say("\n".join([*_table(rows), *_conclusions(recording, rows, moved=capacity is not None)]))
    if output is not None and replayed is not None:
        with writing(output):
            replayed.save(output, overwrite=force)
        say(f"Wrote {output}", err=as_json)


def _replayed(recording: "Recording", settings: str, capacity: int | None) -> "Recording":
    from gpuviz.simulation.replay import replay

    return replay(recording, settings=settings, capacity=capacity)


def _table(rows: list[dict[str, Any]]) -> Iterator[str]:
    cells = [_HEADER, *(_cells(row) for row in rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
    for first, *others in cells:
        aligned = [cell.rjust(width) for cell, width in zip(others, widths[1:], strict=True)]
        yield "  ".join([first.ljust(widths[0]), *aligned])


def _cells(row: dict[str, Any]) -> tuple[str, ...]:
    lower, upper = row["peak_reserved_lower"], row["peak_reserved"]
    reserved = _or_unknown(upper, format_bytes)
    if lower != upper:
        reserved = f"{format_bytes(lower)} to {reserved}"
    calls = _or_unknown(row["driver_calls"], format_count)
    if row["driver_ns"] is not None:
        calls += f" ({format_duration(row['driver_ns'])})"
    return (
        name_of(row["settings"]),
        reserved,
        format_bytes(row["peak_allocated"]),
        _or_unknown(row["fragmentation"], format_share),
        _or_unknown(row["num_ooms"], format_count),
        _or_unknown(row["num_alloc_retries"], format_count),
        calls,
    )


def _or_unknown(value: Any, form: Any) -> str:
    return _UNKNOWN if value is None else str(form(value))


def _conclusions(
    recording: "Recording", rows: list[dict[str, Any]], *, moved: bool
) -> Iterator[str]:
    """Yield when the first request fails, and which setting needs the least memory."""
    devices = recording.tables["devices"]["total_memory"].to_pylist()
    if not moved and not all(devices):
        yield (
            "The recording does not contain the memory of the GPU. The replays rest on a GPU with "
            "room for everything, unless requests failed in the recording; --capacity SIZE sets it."
        )
    for row in rows:
        if row["first_failure_ns"] is not None:
            fails = format_counted(row["num_ooms"], "request fails", "requests fail")
            first = format_duration(row["first_failure_ns"])
            yield f"{name_of(row['settings'])}: {fails}, the first after {first}."
    best = recommendation(recording, rows, moved=moved)
    if best is not None:
        yield f"{best.effect}:"
        yield f"  {best.line}"
