"""The headline numbers of a dashboard."""

from html import escape
from typing import TYPE_CHECKING

from gpuviz.quantities import format_bytes, format_count, format_duration, format_share
from gpuviz.report.summary import Number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gpuviz.recorder_status import RecorderStatus
    from gpuviz.recording import Recording

_STYLE = """<style>
.gpuviz-numbers{display:flex;flex-wrap:wrap;gap:6px 22px;margin:4px 0;line-height:1.35;
color:var(--jp-ui-font-color1,inherit);font-family:var(--jp-ui-font-family,system-ui,sans-serif)}
.gpuviz-numbers dt{font-size:11px;opacity:.8;font-weight:400;margin:0}
.gpuviz-numbers dd{margin:0;font-variant-numeric:tabular-nums}
.gpuviz-numbers__value{font-size:16px;font-weight:600}
.gpuviz-numbers__detail{font-size:11px;opacity:.8}
</style>"""


def live_numbers(
    recording: "Recording",
    status: "RecorderStatus",
    device: int | None = None,
) -> list[Number]:
    """Return the numbers of a recorder as of now, ready to print.

    Args:
        recording: What it has recorded until now.
        status: Of the same recorder.
        device: Ordinal; the recording's first device if None.
    """
    return [
        *(_memory(recording, device) if recording.devices else ()),
        *_streams(recording, status, device),
        _lost(status),
        _own_cost(recording, status),
    ]


def numbers_html(numbers: list[Number]) -> str:
    """Return headline numbers as HTML; all texts are escaped."""
    parts = (
        f"<div><dt>{escape(number.name)}</dt>"
        f'<dd class="gpuviz-numbers__value">{escape(number.value)}</dd>'
        f'<dd class="gpuviz-numbers__detail">{escape(number.detail)}</dd></div>'
        for number in numbers
    )
    return f'{_STYLE}<dl class="gpuviz-numbers">{"".join(parts)}</dl>'


def _memory(recording: "Recording", device: int | None) -> "Iterator[Number]":
    device = recording.device_or_first(device)
    stats = recording.memory_stats(device)
    now = recording.fragmentation(None, device)
    peak = format_bytes(recording.peak(device).bytes)
    allocated = stats["allocated_bytes.all.current"]
    yield Number("Allocated", format_bytes(allocated), f"peak {peak}")
    yield Number("Reserved", format_bytes(now.reserved), f"{format_bytes(now.free)} of it free")
    outside = format_bytes(now.free - now.largest_free)
    detail = f"{outside} free outside the largest free block"
    yield Number("Fragmentation", format_share(now.external), detail)
    unused = _unused(recording, device)
    if unused is None:
        yield Number("Largest free block", format_bytes(now.largest_free), "in segments")
        return
    possible = max(now.largest_free, unused + now.cached_whole)
    detail = f"{format_bytes(unused)} unused, {format_bytes(now.cached_whole)} can be given back"
    yield Number("Can be allocated now", format_bytes(possible), detail)


def _unused(recording: "Recording", device: int) -> int | None:
    """Return the bytes of a device that nobody uses, by the latest sample; None if unknown."""
    import pyarrow.compute as pc

    samples = recording.table("device_memory")
    samples = samples.filter(pc.equal(samples["device"], device))
    sizes = {row["id"]: row["total_memory"] for row in recording.table("devices").to_pylist()}
    total = sizes.get(device) or 0
    if not samples.num_rows or not total:
        return None
    return max(0, total - int(samples["used"][-1].as_py()))


def _streams(
    recording: "Recording",
    status: "RecorderStatus",
    device: int | None,
) -> "Iterator[Number]":
    if not status.streams:
        yield Number("GPU busy", "unknown", "streams are not recorded")
        return
    lanes = recording.overlap(device).devices
    if not lanes:
        yield Number("GPU busy", "0 %", "nothing ran yet")
        return
    lane = lanes[0]
    yield Number("GPU busy", format_share(lane.busy), f"of {format_duration(lane.window_ns)}")
    if lane.copy_ns:
        hidden = format_share(lane.kernel_copy_overlap)
        yield Number("Copies hidden", hidden, f"of {format_duration(lane.copy_ns)} of copies")


def _lost(status: "RecorderStatus") -> Number:
    lost = status.dropped + status.dropped_activities
    oldest = format_count(status.dropped_oldest)
    return Number("Lost", format_count(lost), f"{oldest} of the oldest given up")


def _own_cost(recording: "Recording", status: "RecorderStatus") -> Number:
    share = status.own_cost_ns / max(recording.duration_ns, 1)
    return Number("Own cost", format_duration(status.own_cost_ns), f"{format_share(share)} of time")
