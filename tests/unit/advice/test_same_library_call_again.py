"""R57: calls of library functions that compute the same values in each round of a loop."""

from itertools import pairwise

import pyarrow as pa
import pytest

from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.training import installed

SIZE, ROUNDS = 16 * MI, 20
SPARSE = "cupyx/scipy/sparse/_coo.py"
SEQUENCE = (
    "void cub::detail::for_each::static_kernel<long, thrust::cuda_cub::__tabulate::functor<"
    "thrust::device_ptr<unsigned long>, thrust::generic::compute_sequence_value<unsigned long> > >"
)


def _sorted(cp, matrix):
    """Sort a copy of the entries, and read whether any of them are of the same place."""
    copied = cp.elementwise("copy", matrix)
    order, result = cp.empty(SIZE), cp.empty(SIZE)
    cp.kernel(SEQUENCE, [], [order])
    cp.kernel("DeviceMergeSort", [copied, order], [order])
    cp.kernel("cupy_take", [copied, order], [result])
    float(result.sum())
    return result


def _multiplied(cp, convert, matrix, state):
    rows = convert(cp, matrix) if convert else matrix
    product = cp.empty(SIZE)
    cp.kernel("csrmv", [rows, state], [product])
    return product


def _prepared(cp, x):
    return cp.elementwise("exp", x)


convert = installed(_sorted, SPARSE, "_coo_base.tocsr")
prepare = installed(_sorted, SPARSE, "_coo_base._prepare")
multiply = installed(_multiplied, SPARSE, "_coo_base.__matmul__")
weights = installed(_prepared, "filters/windows.py", "weights")


def multiplies(cp, *, function=convert, changes=False, once=False):
    matrix, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    if once:
        matrix, function = function(cp, matrix), None
    for _ in range(ROUNDS):
        state = multiply(cp, function, matrix, state)
        if changes:
            matrix += state


def scales(cp, *, changes=False, twice=False, once=False):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    if once:
        kept = weights(cp, x)
    for _ in range(ROUNDS):
        if once:
            state += kept
        elif twice:
            state += weights(cp, x) * weights(cp, state)
        else:
            state += weights(cp, x)
        if changes:
            x += state


def _filtered(cp, coefficients, x):
    """Make the coefficients in many launches, always the same, and apply them."""
    made = coefficients(cp)
    result = cp.empty(SIZE)
    cp.kernel("convolve", [x, made], [result])
    return result


def _coefficients(cp):
    made = cp.elementwise("exp", cp.arange(64))
    for _ in range(30):
        made = cp.elementwise("sin", made)
    return made


def _chained(cp, x):
    """Multiply what is always the same many times, and the argument once, by the same function."""
    made = cp.elementwise("multiply", cp.arange(64))
    for _ in range(30):
        made = cp.elementwise("multiply", made)
    return cp.elementwise("multiply", x)


savgol = installed(_filtered, "signal/savgol.py", "savgol_filter")
make_coefficients = installed(_coefficients, "signal/savgol.py", "savgol_coeffs")
forward = installed(_prepared, "torch/nn/modules/activation.py", "Softplus.forward")
chain = installed(_chained, "signal/chain.py", "chain")


def filters(cp, *, function=savgol, coefficients=make_coefficients):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        x = cp.elementwise("tanh", x)
        state += function(cp, coefficients, x)


def _wrapped(cp, function, x):
    return function(cp, x)


def calls(cp, wrapper, function):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        state += wrapper(cp, function, x)


def chains(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        x = cp.elementwise("tanh", x)
        state += chain(cp, x)


def scales_but_one_round(cp):
    """Scale by the weights of another array in one round of many."""
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(3 * ROUNDS):
        if step == ROUNDS:
            other = cp.elementwise("tanh", state)
        state += weights(cp, other if step == ROUNDS else x)


IDENTITY, STATUS = "cupy_fill", "xxtrf4_set_info_ker(int, int*)"
COUNTERS, PRODUCT = "dtrsv_init_up(int*, int)", "sm90_xmma_gemm_f64f64_f64f64_f64_nn"


def _factored(cp, matrix, kernels):
    """Factorize a copy of a matrix, as cuSOLVER does, and clear a work area for a product."""
    factor, identity, area = cp.elementwise("copy", matrix), cp.empty(SIZE), cp.empty(1)
    status, result = cp.empty(1), cp.empty(SIZE)
    cp.kernel(kernels[0], [], [identity], scalars=[1.0])
    cp.kernel(kernels[1], [], [status], scalars=[0])
    cp.kernel("getrf_pivot", [factor, status], [factor, status])
    cp.gpu.fill(area.memory)
    cp.kernel(kernels[2], [factor, identity], [result])
    return result


factored = installed(_factored, "cupy/linalg/_solve.py", "inv")


def solves(
    cp, *, kernels=(IDENTITY, STATUS, PRODUCT), counters=COUNTERS, changes=False, once=False
):
    matrix, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    kept = factored(cp, matrix, kernels) if once else None
    for _ in range(ROUNDS):
        if once:
            state += kept
        else:
            state += factored(cp, matrix, kernels)
        cp.kernel(counters, [], [])
        if changes:
            matrix += state


def with_hidden_memsets(program):
    """Return the recording of a program whose memsets are of memory that is not seen.

    The next call makes each.
    """
    recording = of_arrays(program)
    tables = recording.tables
    hidden = {
        row["correlation"] for row in tables["activities"].to_pylist() if row["kind"] == "memset"
    }
    touched, calls = tables["launch_blocks"], tables["api_calls"]
    seen = [each not in hidden for each in touched["correlation"].to_pylist()]
    rows = calls.to_pylist()
    for row, following in pairwise(rows):
        row["stack"] = following["stack"] if row["correlation"] in hidden else row["stack"]
    changed = {"api_calls": pa.Table.from_pylist(rows, calls.schema)}
    changed["launch_blocks"] = touched.filter(seen)
    return Recording({**tables, **changed}, recording.manifest)


def again(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R57"]


def test_a_matrix_that_each_product_converts_is_converted_once():
    before, after = (of_arrays(lambda cp, once=once: multiplies(cp, once=once)) for once in (0, 1))
    (finding,) = again(before)

    assert finding.title == (
        "`tocsr` in `state = multiply(cp, function, matrix, state)` computes the same values 20 "
        "times."
    )
    assert finding.change == (
        "The operation needs another format and converts the matrix each time: convert it once, "
        "before the loop, and keep its result (64.0 MiB), as by `converted = matrix.tocsr()`, and "
        "use `converted` only in this operation, since others may need the present format."
    )
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.05)
    assert again(after) == []


def test_a_function_that_a_line_calls_is_called_once():
    before, after = (of_arrays(lambda cp, once=once: scales(cp, once=once)) for once in (0, 1))
    (finding,) = again(before)

    assert finding.title == (
        "`weights` in `state += weights(cp, x)` computes the same values 20 times."
    )
    assert finding.change == (
        "Make this call once, before the loop, and keep its result (64.0 MiB)."
    )
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.05)
    assert again(after) == []


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(lambda cp: multiplies(cp, changes=True), id="a matrix that changes"),
        pytest.param(
            lambda cp: multiplies(cp, function=prepare), id="what the program cannot call itself"
        ),
        pytest.param(lambda cp: scales(cp, changes=True), id="an argument that changes"),
        pytest.param(lambda cp: scales(cp, twice=True), id="one call of two on the line"),
        pytest.param(filters, id="most launches of a call, but not all"),
        pytest.param(chains, id="most launches of a call, all of the same function"),
    ],
)
def test_calls_that_differ_or_are_not_the_programs_are_no_finding(program):
    assert again(of_arrays(program)) == []


def test_a_matrix_that_is_factorized_in_each_round_is_factorized_once():
    before, after = (
        with_hidden_memsets(lambda cp, once=once: solves(cp, once=once)) for once in (False, True)
    )
    (finding,) = again(before)

    assert finding.title == (
        "`inv` in `state += factored(cp, matrix, kernels)` computes the same values 20 times."
    )
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.05)
    assert again(after) == []


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"changes": True}, id="another matrix each time"),
        pytest.param(
            {"kernels": ("sample_walkers", STATUS, PRODUCT)}, id="a kernel without inputs"
        ),
        pytest.param({"counters": "advance_counter"}, id="a kernel that may write anything"),
        pytest.param(
            {"kernels": (IDENTITY, STATUS, "apply_table")}, id="memory that another kernel clears"
        ),
    ],
)
def test_factorizations_that_may_differ_are_no_finding(options):
    assert again(with_hidden_memsets(lambda cp: solves(cp, **options))) == []


def test_a_function_of_the_program_that_applies_it_too_leaves_out_what_makes_the_coefficients():
    (finding,) = again(of_arrays(lambda cp: filters(cp, function=_filtered)))

    assert finding.title == "`made = coefficients(cp)` computes the same values 20 times."


def test_a_round_with_another_argument_does_not_hide_those_with_the_same():
    (finding,) = again(of_arrays(scales_but_one_round))

    assert finding.title.endswith("` computes the same values 59 times.")


def _unwrapped(cp, _, x):
    return cp.elementwise("exp", x)


@pytest.mark.parametrize(
    ("name", "wrapped", "function", "begin"),
    [
        ("Module._wrapped_call_impl", _wrapped, forward, "`Softplus.forward` in `"),
        ("Module._wrapped_call_impl", _unwrapped, forward, "The module in `"),
        ("context.<locals>.decorate_context", _wrapped, weights, "`weights` in `"),
        ("context.<locals>.decorate_context", _unwrapped, weights, "A call in `"),
    ],
)
def test_a_call_has_the_name_of_the_function_that_is_wrapped(name, wrapped, function, begin):
    wrapper = installed(wrapped, "torch/nn/modules/module.py", name)
    (finding,) = again(of_arrays(lambda cp: calls(cp, wrapper, function)))

    assert finding.title.startswith(begin)
