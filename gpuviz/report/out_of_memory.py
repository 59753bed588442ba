"""HTML page about a failed request for memory."""

from types import MappingProxyType
from typing import TYPE_CHECKING

from gpuviz.conclusions.numbers import Number
from gpuviz.out_of_memory.verdict_text import beside, remedies
from gpuviz.present.markup import Cell, facts_list, html, items, page, panel, part, table
from gpuviz.quantities import format_bytes, format_count, format_counted, format_duration
from gpuviz.report.facts import began
from gpuviz.report.holders import frames_list, holders_table
from gpuviz.report.page import embedded, policy, static

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpuviz.out_of_memory.cached_memory import FreeMemory
    from gpuviz.out_of_memory.failures import OutOfMemory
    from gpuviz.recording import Recording

_MOST_STACKS = 20


def build_page(
    recording: "Recording",
    failed: "OutOfMemory",
    names: "Mapping[int, tuple[str, ...]]" = MappingProxyType({}),
) -> str:
    """Return the page about a failure, which embeds the recording.

    Args:
        recording: A recording that ends with the failure; see `gpuviz.out_of_memory.last_moments`.
        failed: The failure.
        names: The program's names of its arrays, by the stack that allocated them.
    """
    script, style = static("report.js"), static("report.css")
    before, after = page(
        "out_of_memory.html",
        policy=policy(style, script),
        title=f"Out of memory: {format_bytes(failed.requested)} on {_device(recording, failed)}",
        style=style,
        verdict=failed.summary,
        remedies=remedies(failed),
        notes=recording.notes,
        request=panel("Request", _numbers(failed) + _request(recording, failed), slug="request"),
        sites=panel(
            "Allocated memory by line",
            holders_table(recording, failed.device, names),
            slug="allocated",
        ),
        free=panel(
            "Memory by pool and stream",
            _free_table(failed) + _obstacle(recording, failed),
            slug="pools",
        ),
        device=failed.device,
        script=script,
    )
    return before + embedded(recording) + after


def _device(recording: "Recording", failed: "OutOfMemory") -> str:
    rows = recording.table("devices").to_pylist()
    name = next((row["name"] for row in rows if row["id"] == failed.device), "")
    return f"device {failed.device}" + (f" ({name})" if name else "")


def _numbers(failed: "OutOfMemory") -> str:
    request = failed.request
    blocks = format_counted(failed.allocated_blocks, "block")
    largest = max((each.largest for each in failed.free), default=0)
    limit = "no limit" if failed.limit is None else f"limited to {format_bytes(failed.limit)}"
    total = f"of {format_bytes(failed.device_total)}" if failed.device_total else "total unknown"
    numbers = [
        ("Requested", format_bytes(failed.requested), f"{format_count(failed.requested)} B"),
        ("Allocated", format_bytes(failed.allocated), blocks),
        (
            "Free in segments",
            format_bytes(request.cached),
            f"largest block {format_bytes(largest)}",
        ),
        ("Waiting for other streams", format_bytes(failed.pending), "freed, not yet reusable"),
        ("Reserved", format_bytes(failed.reserved), limit),
        ("Free on the device", _known(failed.device_free), total),
        *_beside(failed),
        ("Used outside this allocator", _known(failed.other_memory), _others(failed)),
        (
            "Requested from the device",
            format_bytes(failed.segment_size),
            "the new segment",
        ),
    ]
    return part("numbers", [Number(*each) for each in numbers])


def _beside(failed: "OutOfMemory") -> list[tuple[str, str, str]]:
    """Return what another recorded allocator of the process holds; nothing without one."""
    if not failed.beside:
        return []
    cached = f"{format_bytes(failed.cached_beside)} in segments that it does not use"
    return [(f"Held by {beside(failed)}", format_bytes(failed.beside), cached)]


def _known(size: int | None) -> str:
    return "unknown" if size is None else format_bytes(size)


def _others(failed: "OutOfMemory") -> str:
    if failed.other_processes is None:
        return "other processes, libraries, the CUDA context"
    return f"{format_bytes(failed.other_processes)} by other processes"


def _request(recording: "Recording", failed: "OutOfMemory") -> str:
    manifest = recording.manifest
    threads = recording.table("threads").to_pylist()
    thread = next((row["name"] for row in threads if row["id"] == failed.thread), "")
    facts = {
        "Line": _line(recording, failed.stack),
        "Pool and stream": failed.pool_and_stream,
        "Time": f"{format_duration(failed.time_ns)} after the start of the recording",
        "Thread": f"{thread} ({failed.thread})" if thread else str(failed.thread),
        "Program": " ".join(manifest.program),
        "Allocator": manifest.allocator_name,
        "Settings": manifest.settings or "defaults",
        "Recording started": began(recording),
    }
    return html(
        "{}\n<h4>Call stack of the request</h4>\n{}\n"
        "<p>This page works offline and contains the recording up to the failure: "
        "<code>gpuviz.load</code> returns it. Times are relative to the start of the recording."
        "</p>",
        facts_list(facts),
        frames_list(recording, failed.stack),
    )


def _obstacle(recording: "Recording", failed: "OutOfMemory") -> str:
    found = failed.obstacle
    if found is None or not 0 < found.bytes < failed.size:
        return ""
    lines = (
        f"{format_bytes(size)} by {_line(recording, stack)}"
        for stack, size in found.stacks[:_MOST_STACKS]
    )
    return html(
        "<h3>Live blocks between free memory</h3>\n<p>Without these {} the request would fit:</p>"
        "\n{}",
        format_bytes(found.bytes),
        items(lines, "gpuviz-findings"),
    )


def _line(recording: "Recording", stack: int) -> str:
    site, source = recording.call_stacks.call_site(stack)
    return f"{source.strip()}  {site}".strip()


def _free_table(failed: "OutOfMemory") -> str:
    if not failed.free:
        return html("<p>This allocator does not expose its segments.</p>")
    headings = ("Pool and stream", "Reserved", "Free", "Largest free block", "Waiting for streams")
    rows = (_free_row(failed, each) for each in failed.free)
    return table("Memory by pool and stream", headings, rows)


def _free_row(failed: "OutOfMemory", each: "FreeMemory") -> "tuple[str | Cell, ...]":
    is_own = (each.pool, each.stream) == (failed.pool, failed.stream)
    name = f"{each.name} (of the request)" if is_own else each.name
    sizes = (each.reserved, each.free, each.largest, each.pending)
    return name, *(Cell(format_bytes(size), f"{format_count(size)} B") for size in sizes)
