"""HTML page about a failed request for memory."""

from types import MappingProxyType
from typing import TYPE_CHECKING

from gpuviz.conclusions.numbers import failure_numbers
from gpuviz.out_of_memory.verdict_text import remedies
from gpuviz.present.markup import Cell, facts_list, html, items, page, panel, part, table
from gpuviz.quantities import format_bytes, format_count, format_duration
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
        request=panel(
            "Request",
            part("numbers", failure_numbers(failed)) + _request(recording, failed),
            slug="request",
        ),
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
