"""Chart of free blocks by size."""

from typing import TYPE_CHECKING

from gpuviz.analysis.state import state_at
from gpuviz.data.recording_data import Moment
from gpuviz.figures.palette import FREE
from gpuviz.figures.style import bytes_scale, figure
from gpuviz.quantities import format_bytes, format_count

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from gpuviz.recording import Recording

_FREE = 0


def free_blocks_figure(
    recording: "Recording",
    at: Moment = None,
    device: int | None = None,
) -> "go.Figure":
    """Return a chart of the bytes in free blocks by block size, in powers of two.

    Args:
        recording: The recording.
        at: The moment; the end if None.
        device: Ordinal; the recording's first device if None.

    Raises:
        ValueError: The recording has no such device.
    """
    device = recording.device_or_first(device)
    blocks = state_at(recording, at, device).blocks()
    chosen = (blocks["state"] == _FREE) & (blocks["device"] == device) & (blocks["segment"] >= 0)
    totals: dict[int, list[int]] = {}
    for size in blocks["size"][chosen].tolist():
        totals.setdefault(size.bit_length() - 1, []).append(size)
    powers = sorted(totals)
    sums = [sum(totals[power]) for power in powers]
    scale, unit = bytes_scale(max(sums, default=0))
    made = figure(
        f"Free blocks by size, device {device}",
        x_title="size of the block",
        y_title=f"{unit} in such blocks",
        bargap=0.15,
    )
    made.add_bar(
        x=[f"{format_bytes(1 << power)} to {format_bytes(2 << power)}" for power in powers],
        y=[total / scale for total in sums],
        marker={"color": FREE},
        text=[format_count(len(totals[power])) for power in powers],
        hovertemplate=f"%{{x}}: %{{text}} blocks, %{{y:.3~f}} {unit}<extra></extra>",
        name="free blocks",
    )
    return made
