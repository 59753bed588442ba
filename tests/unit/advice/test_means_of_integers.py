"""R33: arrays in double precision because they follow from means of small integers."""

from functools import partial

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.arrays import MI, of_arrays

SIZE, ROUNDS, FRAMES = 16 * MI, 6, 6


def calibrates(  # noqa: PLR0913 - what the programs differ in
    cp,
    *,
    kind="float64",
    data="uint16",
    raws=None,
    frames=FRAMES,
    is_known=False,
    other=None,
    use=None,
):
    """Subtract a mean of frames of a camera from others.

    Args:
        cp: The functions of CuPy.
        kind: The type of the mean.
        data: The type of the frames.
        raws: The type of the others, if it is not the same.
        frames: How many frames the mean is of.
        is_known: Whether an elementwise function uses these frames, too.
        other: What makes an array to multiply the result with.
        use: A kernel of a library that reads the result.
    """
    darks, raw = cp.uploaded(frames * SIZE, data), cp.uploaded(SIZE, raws or data)
    if is_known:
        cp.elementwise("add", darks, 1.0, out=darks)
    dark = cp.reduced(darks, SIZE, kind)
    weights = None if other is None else other(cp)
    for _ in range(ROUNDS):
        image = raw - dark
        if weights is not None:
            image = image * weights
        scaled = cp.elementwise("exp", image)
        if use is not None:
            cp.kernel(use, [scaled], [cp.empty(1)])
        float(scaled.sum())
        del image, scaled


def flattens(cp, *, kind="float64"):
    """Compute with nothing but the mean of frames."""
    frames = cp.uploaded(FRAMES * SIZE, "uint16")
    for _ in range(ROUNDS):
        cp.elementwise("add", frames, 1.0, out=frames)
        flat = cp.reduced(frames, SIZE, kind)
        scaled = cp.elementwise("exp", flat)
        float(scaled.sum())
        del flat, scaled


def asks_for_double(cp):
    darks, raw = cp.uploaded(FRAMES * SIZE, "uint16"), cp.uploaded(SIZE, "uint16")
    dark = cp.reduced(darks, SIZE, "float64")
    for _ in range(ROUNDS):
        image = raw - dark
        float(image.sum())
        del image


def subtracts_a_number(cp):
    darks, raw = cp.uploaded(FRAMES * SIZE, "uint16"), cp.uploaded(SIZE, "uint16")
    cp.elementwise("add", darks, 1.0, out=darks)
    dark = cp.reduced(darks, 1, {"mean": "float64"}["mean"])
    for _ in range(ROUNDS):
        image = raw - dark
        float(image.sum())
        del image


def of(program):
    found = findings(of_arrays(program), small=True)
    return [each for each in found if each.rule == "R33"]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(calibrates, id="no number of elements in double precision"),
        pytest.param(partial(calibrates, is_known=True), id="known integers"),
        pytest.param(partial(calibrates, is_known=True, frames=8), id="known and even"),
        pytest.param(partial(calibrates, data="bool", frames=3), id="masks"),
    ],
)
def test_means_of_small_integers_could_be_in_single_precision(program):
    (finding,) = of(program)

    before, after = of_arrays(program), of_arrays(partial(program, kind="float32"))
    assert finding.title.startswith("`dark = cp.reduced(darks, SIZE, kind)` makes up to ")
    assert finding.reason.endswith(
        "no other data is more precise. The other data is of such integers, as in "
        "`image = raw - dark`."
    )
    assert finding.change == (
        "Reduce to single precision (`dtype=cupy.float32`) in this line, if that is precise enough."
    )
    assert finding.certainty == "possible"
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.1)
    assert of(partial(program, kind="float32")) == []


def test_a_mean_that_is_used_alone_is_found_if_the_integers_are_known():
    (finding,) = of(flattens)

    before, after = of_arrays(flattens), of_arrays(partial(flattens, kind="float32"))
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.1)
    assert finding.reason.endswith("no other data is more precise.")


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(asks_for_double, id="the line names the type"),
        pytest.param(subtracts_a_number, id="one value"),
        pytest.param(partial(calibrates, data="int32", frames=3), id="integers of 32 bits"),
        pytest.param(
            partial(calibrates, data="int32", raws="uint16", frames=3, is_known=True),
            id="known to have 32 bits",
        ),
        pytest.param(partial(calibrates, use="potrf_lower"), id="a solver"),
        pytest.param(partial(calibrates, frames=8), id="perhaps data in double precision"),
        pytest.param(
            partial(calibrates, other=lambda cp: cp.uploaded(SIZE, "float64")),
            id="data in double precision",
        ),
        pytest.param(
            partial(calibrates, other=lambda cp: cp.elementwise("exp", cp.fftfreq(SIZE))),
            id="other arrays in double precision",
        ),
    ],
)
def test_other_means_in_double_precision_are_no_finding(program):
    assert of(program) == []
