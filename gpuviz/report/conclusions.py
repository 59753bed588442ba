"""What is concluded about a device, as HTML: the headline, the first findings and sections."""

import json
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from gpuviz.advice.finding_text import NOTHING_FOUND
from gpuviz.advice.text import left_out, unknown
from gpuviz.analysis.steady_state import steady_states
from gpuviz.data.columns import plain
from gpuviz.quantities import format_bytes, format_count, format_duration, format_share
from gpuviz.report.collectives import collectives_section
from gpuviz.report.default_stream import default_stream_section
from gpuviz.report.graph_pools import graph_pools_section
from gpuviz.report.hazards import hazard_notices, hazards_section
from gpuviz.report.iterations import drawn_iterations, iterations_panel, median_iteration
from gpuviz.report.markup import panel, with_code
from gpuviz.report.notices import Notice, around, notices, notices_list, show_button
from gpuviz.report.other_memory import drawn_samples, other_memory_section
from gpuviz.report.summary import DeviceSummary, has_calls, headline, host_blocked_ns, summarize
from gpuviz.report.waterfall import waterfall
from gpuviz.report.what_if import what_if_section

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpuviz.advice.finding import Finding
    from gpuviz.recording import Recording

# Memory events; packing the blocks of more would take a noticeable part of writing a report.
_MOST_PACKED = 200_000
_AT_ONCE = 3


@dataclass(frozen=True, slots=True)
class _Figure:
    """A figure of the headline: name, value, what it refers to, and the attribute of its link."""

    name: str
    value: str
    detail: str
    link: str


def conclusions(recording: "Recording", summary: DeviceSummary, found: "Sequence[Finding]") -> str:
    """Return the headline, the first findings and the sections of a device; texts are escaped.

    Args:
        recording: The recording.
        summary: The device's numbers.
        found: The recording's findings, most saving first.
    """
    hazards = hazard_notices(recording, summary.device)
    shown = notices(recording, summary, found)
    figures = "\n".join(map(_figure, _headline(recording, summary)))
    every = notices_list(shown, unknown(recording))
    return f"""<ul class="gpuviz-headline">
{figures}
</ul>
{_first(shown)}
{iterations_panel(recording, summary.device)}
{panel("Findings", every, slug="findings", count=len(shown))}
{hazards_section(recording, hazards)}
{default_stream_section(recording, summary.device)}
{collectives_section(recording)}
{graph_pools_section(recording, summary.device)}
{other_memory_section(recording, summary.device)}
{what_if_section(recording, summary.device)}
{panel("Summary", _summary(recording, summary), slug="summary")}
<script type="application/json">{_drawn(recording, summary.device)}</script>"""


def _drawn(recording: "Recording", device: int) -> str:
    """Return the numbers that the page draws, as JSON."""
    drawn = {
        "iterations": drawn_iterations(recording, device),
        "otherMemory": drawn_samples(recording, device),
    }
    return json.dumps(drawn, separators=(",", ":"))


def all_conclusions(recording: "Recording") -> str:
    """Return the conclusions about each device of a recording, as HTML for another page."""
    found = recording.findings()
    return "".join(
        f'<article data-device="{device}">\n'
        f"{conclusions(recording, summarize(recording, device), found)}\n</article>"
        for device in recording.devices
    )


def _figure(figure: _Figure) -> str:
    detail = f' <span class="gpuviz-headline__detail">{escape(figure.detail)}</span>'
    return (
        f'<li><button type="button" class="gpuviz-headline__figure" {figure.link}>'
        f"{escape(figure.name)} <strong>{escape(figure.value)}</strong>"
        f"{detail if figure.detail else ''}</button></li>"
    )


def _headline(recording: "Recording", summary: DeviceSummary) -> "Iterator[_Figure]":
    if recording.tables["memory_events"].num_rows:
        yield from _memory(recording, summary)
    yield from _time(recording, summary.device)
    yield from _iterations(recording, summary.device)
    yield _Figure("Dropped", format_count(recording.dropped), "", 'data-tab="environment"')


def _memory(recording: "Recording", summary: DeviceSummary) -> "Iterator[_Figure]":
    total = f"of {format_bytes(summary.total_memory)}" if summary.total_memory else ""
    at_peak = _show(around(recording, summary.allocated_peak_ns))
    yield _Figure("Peak", format_bytes(summary.allocated_peak), total, at_peak)
    if summary.reserved_peak:
        free = f"{format_bytes(summary.free_at_peak)} free"
        highest = _show(around(recording, summary.reserved_peak_ns))
        yield _Figure("Reserved", format_bytes(summary.reserved_peak), free, highest)
    if summary.out_of_memory:
        failed = format_count(summary.out_of_memory)
        yield _Figure("Out of memory", failed, "", 'data-tab="findings"')


def _time(recording: "Recording", device: int) -> "Iterator[_Figure]":
    lanes = [each for each in recording.overlap().devices if each.device == device]
    for lane in lanes:
        steady = next(each for each in steady_states(recording) if each.device == device)
        yield _Figure("GPU busy", format_share(steady.busy), left_out(steady), 'data-tab="kernels"')
        late = sum(steady.causes_ns[cause] for cause in ("host", "synchronization", "allocation"))
        detail = f"{format_duration(late)} due to the host" if late else ""
        longest = _longest_gap(recording, device)
        link = 'data-tab="waits"' if longest is None else _show(longest)
        yield _Figure("GPU idle", format_duration(steady.idle_ns), detail, link)
        if lane.copy_ns:
            hidden = format_share(lane.kernel_copy_overlap)
            yield _Figure("Copies hidden", hidden, "", 'data-tab="copies"')
        if has_calls(recording):
            blocked = format_duration(host_blocked_ns(recording, device))
            yield _Figure("Host blocked", blocked, "", 'data-tab="waits"')


def _iterations(recording: "Recording", device: int) -> "Iterator[_Figure]":
    table = recording.iterations(device)
    if table.num_rows:
        middle = median_iteration(table)
        detail = f"\u00d7 {format_duration(middle['duration_ns'])}"
        link = _show((middle["start"], middle["end"]))
        yield _Figure("Iterations", format_count(table.num_rows), detail, link)


def _longest_gap(recording: "Recording", device: int) -> tuple[int, int] | None:
    """Return the window of the longest idle time of a device with one cause; None without one."""
    gaps = recording.derived["idle_gaps"]
    is_ours = (plain(gaps["device"]) == device) & (plain(gaps["stream"]) == 0)
    starts, ends = plain(gaps["time"])[is_ours], plain(gaps["end"])[is_ours]
    if not len(starts):
        return None
    row = int((ends - starts).argmax())
    return int(starts[row]), int(ends[row])


def _show(window: tuple[int, int]) -> str:
    return f'data-show="{window[0]}-{window[1]}"'


def _first(shown: "list[Notice]") -> str:
    """Return the first few findings, each in one line, and how many there are."""
    if not shown:
        return f'<p class="gpuviz-first gpuviz-findings__none">{escape(NOTHING_FOUND)}</p>'
    rows = "\n".join(_line(number, shown[number - 1]) for number in _most_different(shown))
    every = (
        f'<button type="button" class="gpuviz-link gpuviz-first__all" data-tab="findings">'
        f"all {len(shown)}</button>"
        if len(shown) > _AT_ONCE
        else ""
    )
    return f'<div class="gpuviz-first"><ol>\n{rows}\n</ol>{every}</div>'


def _most_different(shown: "list[Notice]") -> list[int]:
    """Return the numbers of the notices that come first: failures, then of each rule one."""
    rules = {""}
    firsts: list[int] = []
    others: list[int] = []
    for number, notice in enumerate(shown, 1):
        is_first = notice.is_alarm or notice.rule not in rules
        (firsts if is_first else others).append(number)
        rules.add(notice.rule)
    return sorted((firsts + others)[:_AT_ONCE])


def _line(number: int, notice: Notice) -> str:
    kind = "alarm" if notice.is_alarm else "note"
    return (
        f'<li class="gpuviz-first__line gpuviz-first__line--{kind}">'
        f'<strong class="gpuviz-first__saving">{escape(notice.saving)}</strong>'
        f'<span class="gpuviz-first__title" title="{escape(notice.title)}">'
        f"{with_code(notice.title)}</span>{show_button(notice, number)}"
        f'<button type="button" class="gpuviz-link" data-tab="findings" data-number="{number}">'
        "why</button></li>"
    )


def _summary(recording: "Recording", summary: DeviceSummary) -> str:
    numbers = "\n".join(
        f'<div class="gpuviz-number"><dt>{escape(number.name)}</dt>'
        f'<dd class="gpuviz-number__value">{escape(number.value)}</dd>'
        f'<dd class="gpuviz-number__detail">{escape(number.detail)}</dd></div>'
        for number in headline(recording, summary)
    )
    is_long = recording.tables["memory_events"].num_rows > _MOST_PACKED
    chain = recording.peak_chain(summary.device, seconds=None if is_long else 0.0)
    return f'<dl class="gpuviz-numbers">\n{numbers}\n</dl>\n{waterfall(chain)}'
