"""R78: matrix products on Tensor Cores whose rows begin at any address."""

from collections.abc import Iterator

import numpy as np

from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.finding import Finding
from gpuviz.advice.host_lines import longest_lines
from gpuviz.advice.kernels.matrix_kernels import UNALIGNED, bandwidth_of, is_hopper, products
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import stacks_of
from gpuviz.data.columns import plain
from gpuviz.data.strings import are_named
from gpuviz.quantities import format_counted, format_duration

RULES = (
    Rule(
        "R78",
        "matrix products of unaligned rows",
        "on an H100 or H200, kernels on Tensor Cores that load single elements (`align1` in their "
        "names) take at least 20 µs for factors and a result of 256 KiB or more; the saving is "
        "four fifths of their time, of TF32 two thirds, as measured on an H200",
        "pad the dimension that is no multiple of 8, such as the vocabulary, to one of 64",
    ),
)

# Where one factor has a few rows or columns, more of them are more work.
_LEAST_BYTES = 256 << 10
_LEAST_NS = 20_000
# Of the time, with aligned rows: on an H200, 1/4 to 1/8 with bfloat16, 1/3 with TF32.
_ALIGNED, _ALIGNED_TF32 = 0.2, 0.35
_HALF = ("bf16", "_f16", "h1688", "h16816")


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find large matrix products that cannot load several elements at once.

    Trigger: on an H100 or H200, products on Tensor Cores whose kernels are for rows that begin at
    any address, by their names; each takes at least 20 µs, and both factors and the result have at
    least 256 KiB, as otherwise a dimension may be so small that padding is more work.

    Saving: the recording's `Schedule`, replayed with products that take a fifth of their time, with
    TF32 35 % of it, and at least what their arrays need at the memory's bandwidth: what the same
    products of a few more elements took on an H200 was less.
    Padding a dimension changes the shapes of arrays: ``possible``.
    """
    if not is_hopper(device):
        return
    found = products(device, UNALIGNED)
    spent = device.schedule.duration[found.work]
    chosen = (found.smallest >= _LEAST_BYTES) & (spent >= _LEAST_NS)
    if chosen.any():
        bandwidth = bandwidth_of(device)
        moving = found.bytes[chosen] / bandwidth * 1e9 if bandwidth else np.zeros(chosen.sum())
        yield _finding(device, found.work[chosen], moving)


def _finding(device: DeviceBlocks, work: np.ndarray, moving: np.ndarray) -> Finding:
    """Return the finding about products, which need at least some time to move their arrays."""
    schedule = device.schedule
    tables, spent = schedule.recording.tables, schedule.duration[work]
    names = plain(tables["activities"]["name"])[schedule.rows[work]]
    is_half = are_named(tables, names, lambda name: any(each in name for each in _HALF))
    shorter = schedule.duration.copy()
    least = np.maximum(spent * np.where(is_half, _ALIGNED, _ALIGNED_TF32), moving)
    shorter[work] = np.minimum(spent, least).astype(np.int64)
    change = ScheduleChange(duration=shorter)
    return Finding(
        rule="R78",
        title=(
            f"{format_counted(len(work), 'matrix product')} with unaligned rows "
            f"{'take' if len(work) > 1 else 'takes'} {format_duration(int(spent.sum()))}."
        ),
        reason=(
            "A row, or a column, of a factor or of the result is no multiple of 16 bytes, so that "
            "the kernels, with `align1` in their names, load and store one element at a time. On "
            "an H200, 4096 x 768 times 768 x 50257 in bfloat16 takes 2.5 ms, and 0.43 ms with "
            "50304 columns."
        ),
        change=(
            "Pad the dimension that is no multiple of 8 to a multiple of 64, and ignore what was "
            "added: the size of a vocabulary in the embedding and the last layer, a number of "
            "channels or classes, the length of sequences. A view that begins between such "
            "addresses, such as `x[:, 1:]`, has unaligned rows as well: copy it (`.contiguous()`)."
        ),
        certainty="possible",
        device=device.device,
        lines=longest_lines(schedule.recording, stacks_of(tables, schedule.call[work]), spent),
        evidence=schedule.evidence(work),
        saved_ns=schedule.saved_alone(change),
        schedule=change,
    )
