"""R57: plans, products, views and copies of the same values in each round."""

import linecache
from types import SimpleNamespace

import numpy as np
import pytest

from gpuviz.advice.arrays.elementwise import function_names
from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.programs import with_unknown_modes
from tests.unit.advice.repeated_work import (
    ROUNDS,
    SIZE,
    again,
    in_each_round,
)
from tests.unit.recording.from_activities import rows_of

# What CuPy's module for FFTs does, as if it were installed.
PLANS = "def plan_of(cufft, size):\n    plan = cufft.Plan1d(size)\n    return plan\n"
PLANS_FILE = "/env/lib/python3.12/site-packages/cupy/fft/_fft.py"


def plan_of(cp, *, is_plan=True):
    """Return the work area of a plan, or another array."""
    if not is_plan:
        return cp.empty(SIZE)
    linecache.cache[PLANS_FILE] = len(PLANS), None, PLANS.splitlines(keepends=True), PLANS_FILE
    names = {}
    exec(compile(PLANS, PLANS_FILE, "exec"), names)  # noqa: S102
    return names["plan_of"](SimpleNamespace(Plan1d=cp.empty), SIZE)


def fft(cp, area, x):
    """Transform an array by two kernels, of which it is not known whether they read the area."""
    out = cp.empty(SIZE)
    cp.kernel("regular_fft", [x, area], [area])
    cp.kernel("vector_fft", [area], [area, out])
    return out


def convolves(cp, *, is_plan=True, changes=False, once=False):
    area = plan_of(cp, is_plan=is_plan)
    x, weights = cp.uploaded(SIZE), cp.uploaded(SIZE)
    kept = fft(cp, area, weights)
    for _ in range(ROUNDS):
        spectrum = fft(cp, area, x)
        of_weights = kept if once else fft(cp, area, weights)
        x += spectrum * of_weights
        if changes:
            weights += x


def test_transforms_that_share_the_work_area_of_a_plan_are_compared_by_their_arrays():
    found = again(of_arrays(convolves))
    (finding,) = found

    assert finding.title == (
        "`of_weights = kept if once else fft(cp, area, weights)` computes the same values 21 times."
    )
    saved = (
        of_arrays(convolves).duration_ns
        - of_arrays(lambda cp: convolves(cp, once=True)).duration_ns
    )
    assert finding.saved_ns == pytest.approx(saved, rel=0.1)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"once": True}, id="transformed once"),
        pytest.param({"changes": True}, id="weights that change"),
        pytest.param({"is_plan": False}, id="an array that kernels may read"),
    ],
)
def test_transforms_of_what_changes_or_may_be_read_are_not_said_to_be_the_same(options):
    assert again(of_arrays(lambda cp: convolves(cp, **options))) == []


def multiplies(cp, *, in_place=False, once=False):
    """Multiply a copy of a matrix in each round, by a kernel that does not say what it writes."""
    matrix, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    kept = cp.elementwise("copy", matrix)
    for _ in range(ROUNDS):
        copied = kept if once else cp.elementwise("copy", matrix)
        if in_place:
            cp.kernel("sm80_xmma_gemm_f32", [copied, state], [matrix])
        else:
            product = cp.empty(SIZE)
            for _part in "ab":
                cp.kernel("sm80_xmma_gemm_f32", [copied, state], [product])
            state += product


@pytest.mark.parametrize("options", [{}, {"once": True}, {"in_place": True}])
def test_a_new_array_is_what_a_product_of_matrices_writes(options):
    recording = of_arrays(lambda cp: multiplies(cp, **options))
    found = again(with_unknown_modes(recording, "sm80_xmma_gemm_f32"))

    assert [each.rule for each in found] == ([] if options else ["R57"])


def multiplies_a_view(cp, *, once=False, changes=False):
    """Multiply a transposed matrix in each round, which the product first copies."""
    matrix, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    if once:
        matrix = cp.elementwise("copy", matrix)
    for _ in range(ROUNDS):
        state = cp.product(matrix, state, copies=not once)
        if changes:
            cp.kernel("update", [state], [matrix])


def test_a_view_that_a_function_copies_in_each_round_is_made_contiguous_once():
    before, after = (
        of_arrays(lambda cp, once=once: multiplies_a_view(cp, once=once)) for once in (False, True)
    )
    (finding,) = again(before)

    assert finding.title == (
        "A part of `state = cp.product(matrix, state, copies=not once)` (`copy`) copies the same "
        "values 20 times."
    )
    assert finding.change.endswith("does not copy `cupy.ascontiguousarray(x)`.")
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.05)
    assert again(after) == []


def test_a_view_of_what_changes_has_to_be_copied_again():
    assert again(of_arrays(lambda cp: multiplies_a_view(cp, changes=True))) == []


def reads_copies(cp):
    field, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        copied = cp.elementwise("copy", field)
        cp.kernel("advect", [copied, state], [state])


def test_a_line_that_only_copies_is_not_told_what_functions_copy():
    (finding,) = again(of_arrays(reads_copies))

    assert finding.title.endswith("copies the same values 20 times.")
    assert finding.change == "Compute this once, before the loop, and keep the result (64.0 MiB)."


def test_the_host_may_change_managed_memory_that_kernels_read():
    recording = of_arrays(in_each_round)
    row = {"device": 0, "operation": "allocation", "memory": "managed", "bytes": MI}
    changed = {"memory_operations": rows_of("memory_operations", [row])}
    managed = Recording({**recording.tables, **changed}, recording.manifest)

    assert "R57" in {each.rule for each in findings(recording)}
    assert "R57" not in {each.rule for each in findings(managed)}


@pytest.mark.parametrize(
    ("kernel", "name"),
    [
        ("sm90_xmma_gemm_f64f64_f64f64_f64_tn_n_tilesize64x128x16_execute_kernel__5x_cublas", None),
        ("void gemv2T_kernel_val<int, float>(cublasGemvParams)", None),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NTT", None),
        ("sm80_xmma_fprop_implicit_gemm_tf32f32_execute_kernel__5x_cudnn", "sm80_xmma_fprop_"),
        ("cupy_multiply__float32_float32_float32", "multiply`"),
    ],
)
def test_a_matrix_product_is_named_as_one(kernel, name):
    recording = of_arrays(lambda cp: cp.kernel(kernel, [], []))
    rows = np.flatnonzero(np.array(recording.tables["activities"]["kind"]) == "kernel")

    named = function_names(recording, rows)

    assert named == "a matrix product" if name is None else named.startswith(f"`{name}")
