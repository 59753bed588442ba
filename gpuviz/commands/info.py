"""``gpuviz info``: what a recording holds, on one screen."""

from typing import TYPE_CHECKING

import click

from gpuviz.recording import load

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gpuviz.recording import Recording

_UNITS = ("KiB", "MiB", "GiB", "TiB")
_KIB = 1024


def run(file: "Path") -> None:
    """Print the facts of a recording.

    Raises:
        GpuvizError: The file cannot be read as a recording.
    """
    click.echo(f"{file} ({format_bytes(_size_on_disk(file))})")
    click.echo("\n".join(facts(load(file))))


def facts(recording: "Recording") -> "Iterator[str]":
    """Yield what there is to say about a recording, a line each."""
    yield from _origin(recording)
    yield ""
    events = recording.table("memory_events")
    yield f"{events.num_rows:,} events in {recording.duration_ns / 1e9:.3f} s"
    yield from _actions(recording)
    for device in recording.table("devices").to_pylist():
        yield ""
        yield f"Device {device['id']}: {device['name']}, {format_bytes(device['total_memory'])}"
        yield from _levels(recording, device["id"])
    yield from _activities(recording)
    yield ""
    tables = ("streams", "pools", "stacks", "threads")
    yield ", ".join(f"{recording.table(name).num_rows:,} {name}" for name in tables)


def format_bytes(count: int) -> str:
    """Return a size in the largest IEC unit that leaves at least 1."""
    if count < _KIB:
        return f"{count} B"
    power = min(count.bit_length() - 1, 10 * len(_UNITS)) // 10
    return f"{count / _KIB**power:.2f} {_UNITS[power - 1]}"


def _size_on_disk(file: "Path") -> int:
    parts = file.iterdir() if file.is_dir() else [file]
    return sum(part.stat().st_size for part in parts)


def _origin(recording: "Recording") -> "Iterator[str]":
    manifest = recording.manifest
    facts = (
        ("recorded", manifest.created),
        ("program", " ".join(manifest.program)),
        ("allocator", " ".join(filter(None, (manifest.allocator, manifest.allocator_name)))),
        ("settings", manifest.settings),
        ("gpuviz", manifest.gpuviz_version),
        ("CuPy", manifest.cupy),
    )
    for name, value in facts:
        if value:
            yield f"{name:<10} {value}"
    for note in recording.notes:
        yield f"{'note':<10} {note}"


def _actions(recording: "Recording") -> "Iterator[str]":
    import pyarrow.compute as pc

    actions = pc.cast(recording.table("memory_events")["action"], "string")
    counts = {row["values"]: row["counts"] for row in pc.value_counts(actions).to_pylist()}
    for action in sorted(counts, key=lambda action: -counts[action]):
        yield f"  {action:<16} {counts[action]:>12,}"


def _levels(recording: "Recording", device: int) -> "Iterator[str]":
    stats = recording.memory_stats(device=device)
    yield f"  {'':<16} {'peak':>12} {'at the end':>12}"
    for name in ("requested", "allocated", "active", "reserved"):
        peak, end = (
            format_bytes(stats[f"{name}_bytes.all.{when}"]) for when in ("peak", "current")
        )
        yield f"  {name:<16} {peak:>12} {end:>12}"


def _activities(recording: "Recording") -> "Iterator[str]":
    """Yield what ran on the GPUs; nothing if no activity was recorded."""
    import pyarrow.compute as pc

    if recording.table("activities").num_rows == 0:
        return
    kernels, copies = recording.kernels(), recording.copies()
    waits = recording.synchronizations()
    yield ""
    yield f"Kernels: {pc.sum(kernels['count']).as_py() or 0:,}"
    size = format_bytes(pc.sum(copies["bytes"]).as_py() or 0)
    yield f"Copies: {pc.sum(copies['count']).as_py() or 0:,}, {size}"
    blocked = (pc.sum(waits["total_ns"]).as_py() or 0) / 1e9
    count = pc.sum(waits["count"]).as_py() or 0
    yield f"Synchronizations: {count:,}, the host blocked for {blocked:.3f} s"
    for each in recording.overlap().devices:
        hidden = f", {each.kernel_copy_overlap:.1%} of copying behind kernels"
        yield (
            f"Device {each.device}: busy {each.busy:.1%} of {each.window_ns / 1e9:.3f} s"
            f"{hidden if each.copy_ns else ''}"
        )
