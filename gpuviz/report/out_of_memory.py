"""HTML page about a failed request for memory."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType

from gpuviz.conclusions.numbers import failure_numbers
from gpuviz.out_of_memory.cached_memory import FreeMemory
from gpuviz.out_of_memory.failures import OutOfMemory
from gpuviz.out_of_memory.remedies import remedies
from gpuviz.out_of_memory.trials import few_pins
from gpuviz.out_of_memory.verdict_text import place_name
from gpuviz.present.markup import page, section_html
from gpuviz.present.section import (
    Cell,
    Part,
    Section,
    facts,
    heading,
    items,
    numbers,
    of_bytes,
    table,
    text,
)
from gpuviz.present.section_table import section_table
from gpuviz.quantities import format_bytes, format_duration
from gpuviz.recording import Recording
from gpuviz.report.facts import began
from gpuviz.report.holders import frames_list, holders_table
from gpuviz.report.page import embedded, policy, static

_MOST_STACKS = 20


def build_page(
    recording: Recording,
    failed: OutOfMemory,
    names: Mapping[int, tuple[str, ...]] = MappingProxyType({}),
) -> str:
    """Return the page about a failure, which embeds the recording.

    Args:
        recording: A recording that ends with the failure; see `gpuviz.out_of_memory.last_moments`.
        failed: The failure.
        names: The program's names of its arrays, by the stack that allocated them.
    """
    script, style = static("report.js"), static("report.css")
    sections = _sections(recording, failed, names)
    start, end = embedded(recording, section_table([(failed.device, sections)]))
    before, after = page(
        "out_of_memory.html",
        policy=policy(style, script),
        title=f"Out of memory: {format_bytes(failed.requested)} on {_device(recording, failed)}",
        style=style,
        verdict=failed.summary,
        remedies=remedies(failed),
        notes=recording.notes,
        sections=[section_html(each, failed.device) for each in sections],
        end=end,
        script=script,
    )
    return before + start + after


def _sections(
    recording: Recording, failed: OutOfMemory, names: Mapping[int, tuple[str, ...]]
) -> list[Section]:
    by_line = "Allocated memory by line"
    by_pool = "Memory by pool and stream"
    return [
        Section("", "", (heading("Timeline until the failure", "device"),)),
        Section("request", "Request", _request(recording, failed)),
        Section("allocated", by_line, holders_table(recording, failed.device, names)),
        Section("pools", by_pool, (_free_table(failed), *_obstacles(recording, failed))),
    ]


def _device(recording: Recording, failed: OutOfMemory) -> str:
    rows = recording.table("devices").to_pylist()
    name = next((row["name"] for row in rows if row["id"] == failed.device), "")
    return f"device {failed.device}" + (f" ({name})" if name else "")


def _request(recording: Recording, failed: OutOfMemory) -> tuple[Part, ...]:
    manifest = recording.manifest
    threads = recording.table("threads").to_pylist()
    thread = next((row["name"] for row in threads if row["id"] == failed.thread), "")
    about = {
        "Line": _line(recording, failed.stack),
        "Pool and stream": failed.pool_and_stream,
        "Time": f"{format_duration(failed.time_ns)} after the start of the recording",
        "Thread": f"{thread} ({failed.thread})" if thread else str(failed.thread),
        "Program": " ".join(manifest.program),
        "Allocator": manifest.allocator_name,
        "Settings": manifest.settings or "defaults",
        "Recording started": began(recording),
    }
    return (
        numbers(failure_numbers(failed)),
        facts(about),
        heading("Call stack of the request"),
        frames_list(recording, failed.stack),
        text(
            "This page works offline and contains the recording up to the failure: `gpuviz.load` "
            "returns it. Times are relative to the start of the recording."
        ),
    )


def _obstacles(recording: Recording, failed: OutOfMemory) -> Iterator[Part]:
    for title, found in (
        ("Live blocks between free memory", failed.obstacle),
        ("Live blocks that keep segments in use", few_pins(failed)),
    ):
        if found is not None and 0 < found.bytes < failed.size:
            yield heading(title)
            yield text(f"Without these {format_bytes(found.bytes)} the request would fit:")
            yield items(
                Cell(f"{format_bytes(size)} by", place=_line(recording, stack))
                for stack, size in found.stacks[:_MOST_STACKS]
            )


def _line(recording: Recording, stack: int) -> str:
    site, source = recording.call_stacks.call_site(stack)
    return f"{source.strip()}  {site}".strip()


def _free_table(failed: OutOfMemory) -> Part:
    if not failed.free:
        return text("This allocator does not expose its segments.")
    headings = ("Pool and stream", "Reserved", "Free", "Largest free block", "Waiting for streams")
    rows = (_free_row(failed, each) for each in failed.free)
    return table("Memory by pool and stream", headings, rows)


def _free_row(failed: OutOfMemory, each: FreeMemory) -> tuple[Cell, ...]:
    is_own = (each.pool, each.stream) == (failed.pool, failed.stream)
    name = f"{each.name} (of the request)" if is_own else place_name(each)
    sizes = (each.reserved, each.free, each.largest, each.pending)
    return Cell(name), *map(of_bytes, sizes)
