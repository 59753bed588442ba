"""Facts about a cell, in short sentences."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gpuviz.analysis.steady_state import SteadyState
from gpuviz.conclusions import numbers
from gpuviz.conclusions.headline_number import Number
from gpuviz.conclusions.wording import left_out
from gpuviz.quantities import (
    format_bytes,
    format_count,
    format_counted,
    format_duration,
    format_share,
)

if TYPE_CHECKING:
    from gpuviz.notebook.cell_result import CellResult, DeviceResult, Held, Wait

_MOST_LINES = 4
_MOST_NAMES = 6
_ACTIONS = {
    "segment_alloc": "allocated",
    "segment_free": "freed",
    "segment_map": "mapped",
    "segment_unmap": "unmapped",
}
_CAUSES = {
    "idle mostly because the host launched late": "host",
    "idle mostly while waiting for other streams": "dependency",
    "idle mostly during synchronizations": "synchronization",
    "idle mostly during allocations": "allocation",
    "idle mostly while waiting for events without a record": "unrecorded_event",
    "idle time with no identified cause": "unknown",
}


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line of the user's program, and how it relates to a number.

    The text is shown in full if ``is_whole``, else its beginning.
    """

    text: str
    source: str
    site: str
    is_whole: bool = False


@dataclass(frozen=True, slots=True)
class Fact:
    """A number and the lines of code behind it."""

    number: Number
    lines: tuple[CodeLine, ...] = ()


def headline(result: "CellResult") -> str:
    """Return the most important facts in one sentence."""
    if not result.devices:
        ran = ", and nothing ran on a GPU" if result.streams else ""
        return f"The {result.subject} used no GPU memory{ran}."
    parts = []
    for device in result.devices:
        of = f" on device {device.summary.device}" if len(result.devices) > 1 else ""
        parts.append(f"peak {format_bytes(device.summary.allocated_peak)}{of}")
        left = sum(held.bytes for held in device.held)
        parts.append(f"{format_bytes(left)} still allocated" if left else "nothing still allocated")
        if device.steady is not None:
            parts.append(f"GPU busy {format_share(device.steady.busy)}")
    return f"{'; '.join(parts)}; took {format_duration(result.end - result.start)}."


def device_facts(result: "CellResult", device: "DeviceResult") -> Iterator[Fact]:
    """Yield the facts about a device, the most important first."""
    yield _peak(device, result.subject)
    yield _held(device, result.subject)
    yield _allocations(device)
    if device.summary.out_of_memory:
        yield Fact(numbers.failed_allocations(device.summary.out_of_memory))
    if device.overlap is not None and device.steady is not None:
        yield _busy(device.steady)
        if device.overlap.copy_ns:
            copies = device.overlap.kernel_copy_overlap, device.overlap.copy_ns
            yield Fact(numbers.hidden_copies(*copies))
        if device.overlap.device_copy_ns:
            yield Fact(numbers.device_copies(device.overlap.device_copy_ns))
    elif not result.streams:
        yield Fact(numbers.not_recorded("GPU busy", "streams were not recorded"))


def waits_fact(waits: tuple["Wait", ...]) -> Fact | None:
    """Return where the host was blocked; None if it was not."""
    if not waits:
        return None
    count = sum(wait.count for wait in waits)
    total = sum(wait.total_ns for wait in waits)
    lines = [_wait(wait) for wait in waits[:_MOST_LINES]]
    return Fact(
        numbers.blocked(
            total, f"{format_counted(count, 'time')} on {format_counted(len(waits), 'line')}"
        ),
        (*lines, *_more(len(waits), "line")),
    )


def _peak(device: "DeviceResult", subject: str) -> Fact:
    summary = device.summary
    before = f"{format_bytes(device.allocated_before)} before the {subject}"
    if summary.reserved_at_peak:
        before += f", {format_bytes(summary.reserved_at_peak)} reserved"
    number = numbers.peak_allocated(summary.allocated_peak, before)
    if not device.peak_site:
        return Fact(number, (CodeLine(f"no higher than before the {subject}", "", ""),))
    return Fact(number, (CodeLine("reached at", device.peak_source, device.peak_site),))


def _held(device: "DeviceResult", subject: str) -> Fact:
    held = device.held
    if not held:
        freed = f"all allocations of the {subject} were freed" if device.summary.allocations else ""
        return Fact(numbers.still_allocated(0, freed))
    blocks = format_counted(sum(each.count for each in held), "block")
    number = numbers.still_allocated(sum(each.bytes for each in held), blocks)
    lines = [_held_line(each) for each in held[:_MOST_LINES]]
    return Fact(number, (*lines, *_more(len(held), "line")))


def _held_line(held: "Held") -> CodeLine:
    return CodeLine(
        f"{format_bytes(held.bytes)} {_holders(held.names)}", held.source.strip(), held.site
    )


def _holders(names: tuple[str, ...] | None) -> str:
    if names is None:
        return "allocated by"
    if not names:
        return "not held by any variable of the notebook"
    more = len(names) - _MOST_NAMES
    rest = f" and {format_count(more)} more variables" if more > 0 else ""
    return f"held by {', '.join(names[:_MOST_NAMES])}{rest}"


def _allocations(device: "DeviceResult") -> Fact:
    calls = device.driver_calls
    parts = [
        f"{format_counted(calls[name], 'segment')} {_ACTIONS[name]}"
        for name in calls
        if calls[name]
    ]
    count = device.summary.allocations
    driver = ", ".join(parts) or ("all from reserved memory" if count else "")
    return Fact(numbers.allocations(count, driver))


def _busy(steady: SteadyState) -> Fact:
    parts = (f"of {format_duration(steady.duration_ns)}", left_out(steady))
    detail = " ".join(filter(None, parts))
    text = max(_CAUSES, key=lambda each: steady.causes_ns[_CAUSES[each]])
    if time := steady.causes_ns[_CAUSES[text]]:
        detail += f"; {text}: {format_duration(time)}"
    return Fact(numbers.busy(steady.busy, detail))


def _wait(wait: "Wait") -> CodeLine:
    kind = wait.kind.replace("_", " ")
    text = f"{format_duration(wait.total_ns)}, {format_counted(wait.count, 'time')}: {kind}"
    return CodeLine(text, wait.source.strip(), wait.site)


def _more(count: int, noun: str) -> tuple[CodeLine, ...]:
    rest = count - _MOST_LINES
    return (CodeLine(f"and {format_counted(rest, f'more {noun}')}", "", ""),) if rest > 0 else ()
