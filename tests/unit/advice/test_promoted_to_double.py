"""R33: arrays in double precision because of a conversion or an operand."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays

SIZE, ROUNDS = 16 * MI, 6


def smooths(cp, *, kind="float64", data="bool", use=None):
    """Compute with samples of one byte, as of a camera."""
    frames = cp.uploaded(SIZE, data)
    for _ in range(ROUNDS):
        video = cp.astype(frames, kind)
        blurred, deviation = cp.empty(SIZE, kind), cp.empty(1, kind)
        cp.kernel("cupyx_scipy_ndimage_correlate", [video], [blurred], 1e-3)
        score = cp.elementwise("absolute", video - blurred)
        cp.kernel("cupy_sum", [score], [deviation])
        if use is not None:
            cp.kernel(use, [score], [cp.empty(1)])
        float(deviation)
        del video, blurred, score


def single(cp):
    smooths(cp, kind="float32")


def propagates(cp, *, once=False, given=False):
    """Multiply data in single precision by weights that are computed from an index."""
    weights = cp.uploaded(SIZE, "float64") if given else cp.astype(cp.arange(SIZE), "float64")
    weights = cp.elementwise("exp", weights)
    if once:
        weights = cp.astype(weights, "float32")
    field = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        field = cp.elementwise("exp", field * weights)
    float(field.sum())


def adds_up(cp):
    """Sums of single precision are more precise in double precision."""
    frames, image = cp.uploaded(SIZE, "bool"), cp.uploaded(SIZE)
    total = cp.astype(frames, "float64")
    for _ in range(ROUNDS):
        total += image
    float(total.sum())


def of(program):
    found = findings(of_arrays(program), small=True)
    return [each for each in found if each.rule == "R33"]


def test_samples_that_are_converted_to_double_precision_could_be_in_single_precision():
    (finding,) = of(smooths)
    before, after = of_arrays(smooths), of_arrays(single)

    assert finding.title == (
        "`video = cp.astype(frames, kind)` makes up to 512 MiB of arrays float64."
    )
    assert [line.source for line in finding.lines] == [
        "video = cp.astype(frames, kind)",
        "frames = cp.uploaded(SIZE, data)",
    ]
    assert finding.change == (
        "Convert to single precision (`astype(cupy.float32)`), if that is precise enough."
    )
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.1)
    assert of(single) == []


def test_an_operand_in_double_precision_is_converted_where_it_is_made():
    (finding,) = of(propagates)

    def followed(cp):
        propagates(cp, once=True)

    before, after = of_arrays(propagates), of_arrays(followed)
    assert finding.title == (
        '`field = cp.elementwise("exp", field * weights)` makes up to 512 MiB of arrays float64.'
    )
    assert finding.reason.startswith(
        '`multiply` combines float32 with the float64 array from `weights = cp.elementwise("exp", '
        "weights)`."
    )
    assert finding.change.startswith("Convert this operand to float32 where it is made (`astype`)")
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.1)
    assert of(followed) == []


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda cp: smooths(cp, use="potrf_lower"), id="a solver"),
        pytest.param(lambda cp: smooths(cp, use="sm80_xmma_gemm_f64"), id="a product of matrices"),
        pytest.param(lambda cp: smooths(cp, data="float32"), id="converted from single precision"),
        pytest.param(lambda cp: propagates(cp, given=True), id="data in double precision"),
        pytest.param(adds_up, id="sums"),
    ],
)
def test_what_may_need_double_precision_is_no_finding(program):
    assert of(program) == []
