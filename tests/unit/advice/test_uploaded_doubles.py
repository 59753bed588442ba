"""R33: arrays in double precision because NumPy's are, which the program uploads."""

from functools import partial

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays

SIZE, ROUNDS = 16 * MI, 6
# NumPy's, which lines that upload do not name.
DEFAULT, DEFAULT_COMPLEX = "float64", "complex128"


def reconstructs(cp, *, converted=False, kind=DEFAULT_COMPLEX, data="complex64", once=False):
    """Compute with data in single precision, and with maps that are uploaded as NumPy has them."""
    maps = cp.uploaded(SIZE, kind)
    if converted:
        maps = cp.astype(maps, "complex64")
    field = cp.uploaded(SIZE, data)
    for _ in range(ROUNDS):
        spectrum = cp.times(cp.transform(field), maps, SIZE)
        image = cp.times(cp.transform(spectrum), maps, SIZE)
        float(image.sum())
        if not once:
            field = image
        del spectrum, image


def corrects(cp, *, converted=False, rounds=ROUNDS, frame="uint16", single="float32"):
    """Multiply each frame of a camera by the same gains."""
    gains = cp.uploaded(SIZE, DEFAULT)
    if converted:
        gains = cp.astype(gains, "float32")
    for _ in range(rounds):
        frames = cp.astype(cp.uploaded(SIZE, frame), single)
        corrected = frames * gains
        contrast = cp.elementwise("exp", corrected)
        float(contrast.sum())
        del frames, corrected, contrast


def solves(cp, *, converted=False, like=True):
    """Iterate from zeros that have the type of other data."""
    weights = cp.uploaded(SIZE, DEFAULT)
    if converted:
        weights = cp.astype(weights, "float32")
    right = cp.elementwise("exp", cp.uploaded(SIZE)) * weights
    kind = "float32" if converted else "float64"
    if like:
        x = zeros_like(cp, kind)
    else:
        x = cp.empty(SIZE, kind)
        cp.elementwise("copy", cp.uploaded(SIZE, kind), out=x)
    for _ in range(ROUNDS):
        x = x + right * weights
    float(x.sum())


def zeros_like(cp, kind):
    x = cp.empty(SIZE, kind)  # as zeros_like(other) does
    cp.kernel("cupy_fill", [], [x])
    return x


def meets_a_mask(cp, *, kind="float32"):
    """Multiply data in double precision by a mask, whose type the program did not think about."""
    field, mask = cp.uploaded(SIZE, DEFAULT), cp.uploaded(SIZE, kind)
    for _ in range(ROUNDS):
        field = cp.elementwise("exp", field * mask)
    float(field.sum())


def meets_masks(cp):
    """Select parts of data in double precision."""
    field, labels = cp.uploaded(SIZE, DEFAULT), cp.uploaded(SIZE, "bool")
    for _ in range(ROUNDS):
        part = field * cp.astype(labels, "float32")
        float(part.sum())


def meets_other_doubles(cp):
    """Multiply by data of another line that is uploaded and names its type."""
    maps, right = cp.uploaded(SIZE, DEFAULT), cp.uploaded(SIZE, kind="float64")
    for _ in range(ROUNDS):
        field = cp.elementwise("exp", cp.uploaded(SIZE))
        float(((field * maps) * right).sum())


def all_in_double(cp):
    """Use NumPy's type for everything."""
    maps, field = cp.uploaded(SIZE, DEFAULT), cp.uploaded(SIZE, DEFAULT)
    for _ in range(ROUNDS):
        field = cp.elementwise("exp", field * maps)
    float(field.sum())


def asked_for(cp):
    maps = cp.uploaded(SIZE, kind="float64")
    for _ in range(ROUNDS):
        float((cp.elementwise("exp", cp.uploaded(SIZE)) * maps).sum())


def used_by(kernel):
    def program(cp):
        maps = cp.uploaded(SIZE, DEFAULT_COMPLEX)
        field = cp.transform(cp.uploaded(SIZE, "complex64"))
        result = cp.times(field, maps, SIZE)
        for _ in range(ROUNDS):
            cp.kernel(kernel, [result], [cp.empty(SIZE, "complex128")])

    return program


def adds_up(cp):
    """Add single precision to an uploaded array, which is more precise in double precision."""
    total = cp.uploaded(SIZE, DEFAULT)
    for _ in range(ROUNDS):
        total += cp.elementwise("exp", cp.uploaded(SIZE))
    float(total.sum())


def meets_a_window(cp):
    """Multiply data in double precision by a small array in single precision."""
    field, window = cp.uploaded(SIZE, DEFAULT), cp.elementwise("exp", cp.uploaded(1024))
    for _ in range(ROUNDS):
        float(cp.times(window, field, SIZE).sum())


def of(program):
    found = findings(of_arrays(program), small=True)
    return [each for each in found if each.rule == "R33"]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(reconstructs, id="what follows meets the maps"),
        pytest.param(partial(reconstructs, once=True), id="all meets data in single precision"),
        pytest.param(corrects, id="converted frames"),
        pytest.param(partial(corrects, frame="float32"), id="frames"),
        pytest.param(solves, id="zeros of the type of others"),
    ],
)
def test_uploaded_arrays_that_meet_single_precision_are_found(program):
    (finding,) = of(program)

    before, after = of_arrays(program), of_arrays(partial(program, converted=True))
    assert finding.title.endswith("of arrays have it.")
    assert "uploads double precision" in finding.title
    assert finding.saved_bytes == pytest.approx(before.peak().bytes - after.peak().bytes, rel=0.01)
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.1)
    assert of(partial(program, converted=True)) == []


def test_the_finding_says_what_meets_what():
    (finding,) = of(reconstructs)

    assert finding.title.startswith("`maps = cp.uploaded(SIZE, kind)` uploads double precision")
    assert (
        "In `spectrum = cp.times(cp.transform(field), maps, SIZE)`, `multiply` combines complex64 "
        "with complex128" in finding.reason
    )
    assert "`cupy.asarray(...).astype(cupy.complex64)`" in finding.change
    assert finding.certainty == "possible"


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(all_in_double, id="everything is in double precision"),
        pytest.param(asked_for, id="the line names the type"),
        pytest.param(meets_a_mask, id="the other may be a mask"),
        pytest.param(meets_masks, id="the others are masks"),
        pytest.param(meets_a_window, id="the other is small"),
        pytest.param(meets_other_doubles, id="other data has it"),
        pytest.param(partial(solves, like=False), id="the other data is uploaded"),
        pytest.param(adds_up, id="it is a sum"),
        pytest.param(partial(corrects, rounds=1), id="a single frame"),
        pytest.param(used_by("potrf_lower"), id="a solver uses it"),
        pytest.param(used_by("sm80_xmma_gemm_f64"), id="a product of matrices uses it"),
    ],
)
def test_uploaded_arrays_are_no_finding_if(program):
    assert of(program) == []
