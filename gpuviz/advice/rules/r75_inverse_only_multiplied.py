"""R75: a matrix is inverted only to multiply the inverse with a few columns."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from gpuviz.advice.arrays.block_uses import BlockUses
from gpuviz.advice.arrays.device_blocks import DeviceBlocks
from gpuviz.advice.arrays.elementwise import WRITES
from gpuviz.advice.finding import Finding, as_subject, named
from gpuviz.advice.host_lines import line_of
from gpuviz.advice.replay.peak_replay import Change
from gpuviz.advice.replay.schedule import ScheduleChange
from gpuviz.advice.rule import Rule
from gpuviz.analysis.launches import have_frame, stacks_of
from gpuviz.analysis.touches import PRODUCT
from gpuviz.data.call_stacks import Frame
from gpuviz.data.columns import distinct
from gpuviz.quantities import format_bytes, format_count, format_duration

RULES = (
    Rule(
        "R75",
        "an inverse that is only multiplied",
        "`cupy.linalg.inv` returns an inverse of 1 MiB or more, and all that reads it are at most "
        "four matrix products with arrays of together at most an eighth of its bytes; the saving "
        "is the time of the triangular solves without a quarter of it for each product, and a "
        "second factorization of the same matrix by `slogdet`, `det` or `lu_factor`",
        "`cupy.linalg.solve`, or one factorization for all uses of the matrix",
    ),
)

_LEAST_BYTES = 1 << 20
_MOST_PRODUCTS = 4
# Of the bytes of the inverse: with more columns, a solution takes about as long.
_MOST_COLUMNS = 1 / 8
# Of the time of the solves, for each product: a solve with few columns has as many steps, and reads
# the whole matrix.
_LEFT = 1 / 4
_FILE = re.compile(r"cupyx?[/\\](scipy[/\\])?linalg[/\\]\w+\.py$")
# All kernels but those of CuPy itself, which copy the matrix and make the identity.
_SOLVING = re.compile(r"^(?!cupy_|memset|memcpy)")
_FACTOR = "_lu_factor"
# Kernels of one solve, of which most read the factors.
_MOST_SOLVES = 16
_CHANGE = (
    "Solve the linear system, such as `cupy.linalg.solve(a, b)` for `inv(a) @ b`. Where the matrix "
    "is used again, or for its determinant, factor it once: `cupyx.scipy.linalg.lu_factor` and "
    "`lu_solve`. If it is symmetric and positive definite, `cupy.linalg.cholesky` and "
    "`cupyx.scipy.linalg.solve_triangular` take half of that."
)


@dataclass(frozen=True, eq=False, slots=True)
class _Inverses:
    """Inverses that are only multiplied, in columns.

    Attributes:
        blocks: Indices of the device's blocks.
        columns: The bytes of the arrays that each is multiplied with.
        products: How many matrix products read each.
        solves: The numbers in the schedule of the kernels that solve for each, and the place in
            `blocks` of each.
        factors: The numbers of the kernels that factor a matrix another time, and the place.
    """

    blocks: np.ndarray
    columns: np.ndarray
    products: np.ndarray
    solves: tuple[np.ndarray, np.ndarray]
    factors: tuple[np.ndarray, np.ndarray]


def find(device: DeviceBlocks) -> Iterator[Finding]:
    """Find lines that invert large matrices for products with a few columns.

    Trigger: CuPy's ``inv`` allocates a block that is still used when it has returned, but only by
    one to four matrix products, whose other arrays have together at most an eighth of its bytes.
    Inverses of batches of matrices have another function.

    Saving: the kernels within ``inv`` that use the result solve for as many columns as the matrix
    has rows. Solving for the few columns of a product takes a quarter of that time: the steps of a
    solve stay as many, and each reads the matrix. Each product may need a solve of its own, as when
    the next one multiplies its result: four leave nothing to save. If the next or the previous use
    of the inverted matrix is a factorization by ``slogdet``, ``det`` or ``lu_factor``, all its
    kernels are saved, as one factorization has both. Both by the recording's `Schedule`. And the
    decrease of the peak if the inverse had the size of the columns.
    """
    is_result = have_frame(device.recording, device.stack, _is_inverse)
    is_result &= device.is_freed & ~device.is_initial & ~device.is_shared & device.is_seen
    is_result &= device.requested >= _LEAST_BYTES
    if not is_result.any():
        return
    found = _inverses(device, is_result)
    sites, of_factor = device.site[found.blocks], found.factors[1]
    is_faster = found.products * _LEFT < 1
    is_faster[of_factor] = True
    for site in distinct(sites[is_faster]).tolist():
        yield _finding(device, found, is_faster & (sites == site))


def _is_inverse(frame: Frame) -> bool:
    return frame.name == "inv" and _FILE.search(frame.filename) is not None


def _is_factorization(frame: Frame) -> bool:
    return frame.name == _FACTOR and _FILE.search(frame.filename) is not None


def _inverses(device: DeviceBlocks, is_result: np.ndarray) -> _Inverses:
    """Return the inverses among the results of ``inv`` that are only multiplied."""
    uses, count = BlockUses(device), len(device.size)
    is_within = uses.are_within(_is_inverse)
    outside = is_result[uses.block] & ~is_within
    # Others add a product to the inverse.
    is_product = uses.are_of(PRODUCT) & ~np.isin(uses.mode, WRITES)
    products = np.bincount(uses.block, outside & is_product, count)
    others = np.bincount(uses.block, outside & ~is_product, count)
    chosen = is_result & (products > 0) & (products <= _MOST_PRODUCTS) & (others == 0)
    columns = np.zeros(count, np.int64)
    for row in np.flatnonzero(outside & chosen[uses.block]).tolist():
        columns[uses.block[row]] += device.requested[uses.beside(row)].max(initial=0)
    chosen &= (columns > 0) & (columns <= _MOST_COLUMNS * device.requested)
    blocks, is_inverting = np.flatnonzero(chosen), is_within & uses.are_of(_SOLVING)
    solving = np.flatnonzero(chosen[uses.block] & is_inverting)
    solving = solving[np.unique(uses.work[solving], return_index=True)[1]]
    is_factoring = uses.are_within(_is_factorization)
    factors = [
        _factored_again(device, uses, is_inverting, is_factoring, block)
        for block in blocks.tolist()
    ]
    counts = [len(each) for each in factors]
    return _Inverses(
        blocks,
        columns[blocks],
        products[blocks],
        (uses.work[solving], np.searchsorted(blocks, uses.block[solving])),
        (np.concatenate([*factors, solving[:0]]), np.repeat(np.arange(len(blocks)), counts)),
    )


def _factored_again(
    device: DeviceBlocks,
    uses: BlockUses,
    is_inverting: np.ndarray,
    is_factoring: np.ndarray,
    inverse: int,
) -> np.ndarray:
    """Return the kernels of another factorization of the matrix that was inverted.

    It uses the matrix next to ``inv``, without another use in between.
    """
    nothing = np.zeros(0, np.int64)
    within = uses.of_block(inverse)
    within = within[is_inverting[within]][:_MOST_SOLVES]
    copied = _same_size(device, uses, within, inverse)
    if copied < 0:
        return nothing
    copying = uses.of_block(copied)[:1]
    matrix = _same_size(device, uses, copying, inverse)
    if matrix < 0:
        return nothing
    rows = uses.of_block(matrix)
    inverting = np.flatnonzero(uses.call[rows] == uses.call[copying])
    near = np.concatenate([inverting[:1] - 1, inverting[-1:] + 1])
    near = near[(near >= 0) & (near < len(rows))]
    for row in rows[near[is_factoring[rows[near]]]].tolist():
        factor = uses.of_block(_same_size(device, uses, np.array([row]), inverse))
        work = uses.work[factor[is_factoring[factor]]]
        return distinct(work[work >= 0])
    return nothing


def _same_size(device: DeviceBlocks, uses: BlockUses, rows: np.ndarray, block: int) -> int:
    """Return the one other block as large as a block that the calls of rows use; -1 if none."""
    found = {
        other
        for row in rows.tolist()
        for other in uses.beside(row).tolist()
        if device.requested[other] == device.requested[block]
    }
    return found.pop() if len(found) == 1 else -1


def _finding(device: DeviceBlocks, found: _Inverses, chosen: np.ndarray) -> Finding:
    schedule = device.schedule
    blocks, columns = found.blocks[chosen], found.columns[chosen]
    (solving, of_solve), (factoring, of_factor) = found.solves, found.factors
    solving, of_solve = solving[chosen[of_solve]], of_solve[chosen[of_solve]]
    factoring = factoring[chosen[of_factor]]
    left = np.minimum(found.products * _LEFT, 1)
    duration = schedule.duration.copy()
    duration[solving] = (schedule.duration[solving] * left[of_solve]).astype(np.int64)
    duration[factoring] = 0
    change = ScheduleChange(duration=duration)
    line = device.lines.line_of(blocks)
    spent = format_duration(int(schedule.duration[solving].sum()))
    return Finding(
        rule="R75",
        title=f"{named(line.site, line.source)} inverts a matrix only to multiply the inverse with "
        f"an array of {format_bytes(int(columns.max()))}"
        + (f", {format_count(len(blocks))} times." if len(blocks) > 1 else "."),
        reason=(
            f"Only matrix products use the inverse of {format_bytes(_size(device, blocks))}. To "
            f"solve for as many columns as the matrix has rows takes {spent}; for so few, gpuviz "
            f"assumes a quarter of that for each product.{_again(device, factoring)}"
        ),
        change=_CHANGE,
        certainty="likely",
        device=device.device,
        lines=(line,),
        evidence=schedule.evidence(np.concatenate([solving, factoring])),
        lifetimes=Change(blocks, device.begin[blocks], device.end[blocks], columns),
        saved_ns=schedule.saved_alone(change),
        schedule=change,
    )


def _size(device: DeviceBlocks, blocks: np.ndarray) -> int:
    return int(device.requested[blocks].max())


def _again(device: DeviceBlocks, work: np.ndarray) -> str:
    """Return a sentence about the line that factors a matrix again; empty if none does."""
    if not len(work):
        return ""
    schedule = device.schedule
    stacks = stacks_of(device.recording.tables, schedule.call[work[:1]])
    spent = format_duration(int(schedule.duration[work].sum()))
    line = line_of(device.recording, int(stacks[0]), spent)
    text = as_subject(named(line.site, line.source))
    return f" {text} factors the same matrices again, in {spent}: one factorization has both."
