"""R33: arrays in double precision because of a conversion or an operand."""

from functools import partial

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


def scales(cp, *, kind="float64", data="uint16"):
    """Divide samples by a number of Python, as `page / 255` does."""
    pages = cp.uploaded(SIZE, data)
    for _ in range(ROUNDS):
        page = cp.elementwise("true_divide", pages, 255.0, out=cp.empty(SIZE, kind))
        ink, total = cp.elementwise("sqrt", page), cp.empty(1, kind)
        cp.kernel("cupy_sum", [ink], [total])
        float(total)
        del page, ink


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


def tapers(cp, *, kind="float64"):
    """Multiply samples by a small window in double precision, as `cupy.hanning` makes it."""
    frames = cp.uploaded(SIZE, "bool")
    window = cp.elementwise("cos", cp.astype(cp.arange(1024), "float64"))
    for _ in range(ROUNDS):
        video = cp.astype(frames, kind)
        tapered = cp.elementwise("exp", video * window)
        float(tapered.sum())
        del video, tapered


def reuses_arrays(cp, *, kind="float64", filters=False):
    """Write to arrays of CuPy's default type that are made once, with `out=`."""
    frames = cp.uploaded(SIZE, "bool")
    result, power = cp.empty(SIZE, "float64"), cp.empty(SIZE, "float64")
    for _ in range(ROUNDS):
        video = cp.astype(frames, kind)
        if filters:
            cp.kernel("cupyx_scipy_ndimage_correlate", [video], [result])
        else:
            cp.elementwise("square", video, out=result)
        cp.elementwise("exp", result, out=power)
        float(power.sum())
        del video


def adds_to_doubles(cp, *, kind="float64"):
    """Add to an array of CuPy's default type, which stays as it is."""
    frames, total = cp.uploaded(SIZE, "bool"), cp.empty(SIZE, "float64")
    cp.kernel("cupy_fill", [], [total])
    for _ in range(ROUNDS):
        video = cp.astype(frames, kind)
        total += cp.elementwise("square", video)
        del video
    float(total.sum())


def weighs_anew(cp, *, in_one_line=False, times=1):
    """Multiply data in single precision by weights that are made in each round."""
    field, index = cp.uploaded(SIZE), cp.arange(SIZE)
    for k in range(ROUNDS):
        if in_one_line:
            result = field * cp.elementwise("cos", cp.astype(index, "float64"), float(k))
        else:
            weights = cp.elementwise("cos", cp.astype(index, "float64"), float(k))
            result = field * weights
            del weights
        for _ in range(times - 1):
            result = cp.elementwise("exp", result)
        float(result.sum())
        del result


def weighs_anew_once_converted(cp, *, times):
    field, index = cp.uploaded(SIZE), cp.arange(SIZE)
    for k in range(ROUNDS):
        weights = cp.elementwise("cos", cp.astype(index, "float64"), float(k))
        weights = cp.astype(weights, "float32")
        result = field * weights
        del weights
        for _ in range(times - 1):
            result = cp.elementwise("exp", result)
        float(result.sum())
        del result


def reduces(cp, *, kind="float64", of_cub=False):
    """Subtract and reduce arrays on a GPU that spends as much time for each element, or more.

    CUB's reductions take what their bytes need.
    """
    frames = cp.uploaded(SIZE, "bool")

    def computed(name, *arrays, result):
        nbytes = sum(each.memory.nbytes for each in (*arrays, result))
        least = 0 if name.startswith("void cub") else 4.8e-12 * SIZE
        cp.kernel(name, arrays, [result], max(least, nbytes / 4.4e12))
        return result

    for _ in range(ROUNDS):
        video = computed(f"cupy_copy__bool_{kind}", frames, result=cp.empty(SIZE, kind))
        scaled = computed(f"cupy_square__{kind}_{kind}", video, result=cp.empty(SIZE, kind))
        score = computed(
            f"cupy_subtract__{kind}_{kind}_{kind}", video, scaled, result=cp.empty(SIZE, kind)
        )
        of_cupy = ("cupy_mean", f"cupy_var_core_{kind}")
        for name in ("void cub::reduce::DeviceReduceKernel<policy>",) if of_cub else of_cupy:
            float(computed(name, score, result=cp.empty(1, kind)))
        del video, scaled, score


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


def test_samples_that_are_divided_could_be_in_single_precision():
    (finding,) = of(scales)
    single, wider = (partial(scales, **each) for each in ({"kind": "float32"}, {"data": "int32"}))

    saved = of_arrays(scales).peak().bytes - of_arrays(single).peak().bytes
    assert finding.saved_bytes == saved
    assert finding.title.startswith('`page = cp.elementwise("true_divide", pages, 255.0, out=')
    assert of(single) == of(wider) == []


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


@pytest.mark.parametrize(
    ("program", "is_alone"),
    [
        pytest.param(smooths, True, id="no other data"),
        pytest.param(tapers, False, id="a small operand in double precision"),
        pytest.param(reuses_arrays, False, id="arrays that exist before"),
        pytest.param(adds_to_doubles, False, id="a sum in double precision"),
    ],
)
def test_what_follows_ends_at_other_data_in_double_precision(program, is_alone):
    (finding,) = of(program)

    before, after = of_arrays(program), of_arrays(partial(program, kind="float32"))
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.1)
    assert ("no other data is more precise" in finding.reason) == is_alone


def test_an_array_that_a_filter_overwrites_does_not_follow():
    program = partial(reuses_arrays, filters=True)
    (finding,) = of(program)

    before, after = of_arrays(program), of_arrays(partial(program, kind="float32"))
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    # But for what filters take.
    assert finding.saved_ns <= before.duration_ns - after.duration_ns
    assert "no other data is more precise" not in finding.reason


@pytest.mark.parametrize("in_one_line", [False, True])
def test_an_operand_that_is_made_in_each_round_costs_as_much_to_convert(in_one_line):
    assert of(partial(weighs_anew, in_one_line=in_one_line)) == []


def test_conversions_of_an_operand_are_subtracted():
    (finding,) = of(partial(weighs_anew, times=5))

    before, after = (
        of_arrays(partial(each, times=5)) for each in (weighs_anew, weighs_anew_once_converted)
    )
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.1)


@pytest.mark.parametrize("of_cub", [False, True])
def test_reductions_take_no_less_than_for_their_elements_but_those_of_cub(of_cub):
    program = partial(reduces, of_cub=of_cub)
    (finding,) = of(program)

    before, after = of_arrays(program), of_arrays(partial(program, kind="float32"))
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.02)
