"""R57: work that computes the same values in each round of a loop."""

import linecache
from types import SimpleNamespace

import numpy as np
import pytest

from gpuviz.advice.arrays.elementwise import function_names
from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.programs import with_unknown_modes, within
from tests.unit.recording.from_activities import rows_of

SIZE, ROUNDS = 16 * MI, 20


def in_each_round(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        weights = cp.elementwise("exp", x * x)
        state += weights


def once(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    weights = cp.elementwise("exp", x * x)
    for _ in range(ROUNDS):
        state += weights


def over_lines(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        squares = x * x
        weights = cp.elementwise("exp", squares)
        state += weights


def weights_of(cp, x):
    squares = x * x
    return cp.elementwise("exp", squares)


def beside_other_work(cp):
    """Compute the same in a function that a line calls, and something else on that line."""
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        state += state * cp.elementwise("log", weights_of(cp, x))


def by_a_function(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        weights = weights_of(cp, x)
        state += weights


def for_each_batch(cp):
    state = cp.uploaded(SIZE)
    batches = [cp.uploaded(SIZE) for _ in range(3)]
    for _ in range(5):
        for batch in batches:
            scaled = cp.elementwise("sqrt", batch)
            state += scaled


def with_the_same_scalars(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        state += x * 0.5


def updated_afterwards(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        weights = cp.elementwise("exp", x)
        cp.elementwise("multiply", weights, float(step), out=weights)
        cp.kernel("solve", [weights], [weights])
        state += weights


def updated_in_another_array(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    weights = cp.elementwise("exp", x)
    for step in range(ROUNDS):
        scaled = weights * float(step)
        cp.kernel("solve", [scaled], [scaled])
        state += scaled


def changed_afterwards(cp):
    """The kernel needs a new array in each round."""
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        weights = cp.elementwise("exp", x)
        cp.kernel("solve", [weights, state], [weights])
        state += weights


def copied_and_updated(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        copied = cp.elementwise("copy", x)
        copied += state
        state += copied


def updated_in_one_array(cp):
    """What a round leaves in the array is there before the next one."""
    x, state, weights = cp.uploaded(SIZE), cp.uploaded(SIZE), cp.empty(SIZE)
    for step in range(ROUNDS):
        cp.elementwise("exp", x, out=weights)
        cp.elementwise("multiply", weights, float(step), out=weights)
        state += weights


def changed_in_some_rounds(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        weights = cp.elementwise("exp", x)
        if step % 5 == 4:
            cp.kernel("solve", [weights, state], [weights])
        state += weights


def by_a_function_that_did_more_at_first(cp):
    """What is known of the first rounds is not enough to call their results the same."""
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(8 * ROUNDS):
        squares = cp.empty(SIZE)
        cp.kernel("cupy_square__float32_float32", [x], [squares], scalars=[min(step, 2)])
        state += squares


def with_other_scalars(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        state += x * float(step)


def with_unknown_scalars(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        product = cp.empty(SIZE)
        cp.kernel("cupy_multiply__float32_float_float32", [x], [product], scalars=None)
        state += product


def of_what_changes(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        state += cp.elementwise("exp", x)
        x += state


def of_new_data(cp):
    state = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        x = cp.uploaded(SIZE)
        state += cp.elementwise("exp", x)


def of_random_numbers(cp):
    state = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        state += cp.random(SIZE)


def of_each_part(cp):
    """The kernel receives another part of the array in each round."""
    x, state = cp.uploaded(4 * SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        part = cp.empty(SIZE)
        cp.kernel("gather", [x], [part], scalars=[step * SIZE])
        state += part


def benchmark(cp):
    """Nothing that changes needs the results: the repetition is the purpose."""
    x = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        float(cp.elementwise("exp", x * x).sum())


def zeros(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        total = cp.empty(SIZE)
        cp.gpu.fill(total.memory)
        total += state
        state += x


def after_unseen_work(cp):
    """A kernel with pointers in the device's memory may have written anything."""
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        cp.kernel("by_pointers", [], [], 20e-6)
        state += cp.elementwise("exp", x)


def of_what_is_not_seen(cp):
    """The kernel reads what an unseen one has written into memory that no kernel names."""
    state = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        result = cp.empty(SIZE)
        cp.kernel("splitKreduce", [result], [result])
        state += result


def of_what_nothing_seems_to_write(cp):
    """Something that is not seen has written the array before the kernel reads it."""
    state = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        result = cp.empty(SIZE)
        state += cp.elementwise("exp", result)


def scaled_in_place(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        weights = cp.elementwise("exp", x)
        weights *= 0.5
        state += weights


def two_lines(cp):
    x, state, other = cp.uploaded(SIZE), cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        weights = cp.elementwise("exp", x)
        state += weights
        roots = cp.elementwise("sqrt", x)
        other += roots


def again(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R57"]


@pytest.mark.parametrize("program", [in_each_round, over_lines, by_a_function])
def test_what_computing_values_once_saves_is_predicted(program):
    (finding,) = again(of_arrays(program))
    saved = of_arrays(program).duration_ns - of_arrays(once).duration_ns

    assert finding.saved_ns == pytest.approx(saved, rel=0.05)
    assert again(of_arrays(once)) == []


def test_what_an_update_changes_afterwards_can_be_kept_too():
    (finding,) = again(of_arrays(updated_afterwards))
    kept = of_arrays(updated_in_another_array)

    saved = of_arrays(updated_afterwards).duration_ns - kept.duration_ns
    assert finding.saved_ns == pytest.approx(saved, rel=0.05)
    assert finding.change == (
        "Compute this once, before the loop, and keep the result (64.0 MiB). `multiply` must then "
        "write another array (`y = x + 1` instead of `x += 1`)."
    )
    assert again(kept) == []


def test_a_line_is_named_with_the_memory_of_its_result():
    (finding,) = again(of_arrays(in_each_round))

    assert finding.title == (
        '`weights = cp.elementwise("exp", x * x)` computes the same values 20 times.'
    )
    assert finding.change == ("Compute this once, before the loop, and keep the result (64.0 MiB).")


def test_each_line_is_named_with_the_memory_of_its_own_result():
    found = again(of_arrays(two_lines))

    assert len(found) == 2
    assert all("keep the result (64.0 MiB)" in each.change for each in found)


def test_each_module_has_parameters_of_its_own_however_they_begin():
    packages = "/env/lib/python3.12/site-packages/torch/nn"

    assert again(within(of_arrays(by_a_function), f"{packages}/functional.py", "normalize"))
    assert again(within(of_arrays(by_a_function), f"{packages}/init.py", "ones_")) == []


def test_the_line_that_calls_a_function_is_named_if_it_does_nothing_else():
    (finding,) = again(of_arrays(by_a_function))

    assert finding.title == "`weights = weights_of(cp, x)` computes the same values 20 times."


def test_lines_that_pass_results_on_are_named_together():
    (finding,) = again(of_arrays(over_lines))

    assert finding.title == "`squares = x * x` and 1 more line compute the same values 20 times."
    assert "keep the result (64.0 MiB)" in finding.change


def test_lines_that_update_one_array_are_named_together():
    (finding,) = again(of_arrays(scaled_in_place))

    assert "and 1 more line compute the same values 20 times" in finding.title
    saved = of_arrays(scaled_in_place).duration_ns - of_arrays(once).duration_ns
    assert finding.saved_ns == pytest.approx(saved, rel=0.05)


def test_values_of_several_inputs_in_turn_are_found_too():
    (finding,) = again(of_arrays(for_each_batch))

    assert "computes the same values 5 times" in finding.title
    assert "keep the result (192 MiB)" in finding.change


def test_a_function_of_a_known_scalar_is_found_too():
    (finding,) = again(of_arrays(with_the_same_scalars))

    assert finding.title == (
        "A part of `state += x * 0.5` (`multiply`) computes the same values 20 times."
    )
    assert finding.change.startswith("Compute this part once, before the loop, and keep its result")


def test_one_line_before_the_loop_is_said_beside_a_kernel_for_the_whole_round():
    first = findings(of_arrays(over_lines))[:2]

    assert {each.rule for each in first} == {"R08", "R57"}


@pytest.mark.parametrize(
    "program",
    [
        changed_afterwards,
        copied_and_updated,
        updated_in_one_array,
        with_other_scalars,
        with_unknown_scalars,
        of_what_changes,
        of_new_data,
        of_random_numbers,
        of_each_part,
        benchmark,
        zeros,
        after_unseen_work,
        of_what_is_not_seen,
        of_what_nothing_seems_to_write,
    ],
)
def test_what_looks_alike_is_no_finding(program):
    assert again(of_arrays(program)) == []


def test_results_that_the_gpu_has_no_room_for_are_computed_again():
    recording = of_arrays(for_each_batch)
    devices = recording.tables["devices"]
    place = devices.schema.get_field_index("total_memory")
    total = devices["total_memory"].take([0]).cast("int64")
    small = devices.set_column(place, devices.schema.field(place), [[400 << 20]])
    full = Recording({**recording.tables, "devices": small}, recording.manifest)

    assert total[0].as_py() > recording.peak().bytes + 192 * MI
    assert again(full) == []


def several_times_in_each_round(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        x += cp.random(SIZE)
        for _ in range(5):
            state += cp.elementwise("exp", x)


def test_of_values_that_change_now_and_then_one_is_kept_at_a_time():
    found = findings(of_arrays(several_times_in_each_round), small=True)
    (finding,) = (each for each in found if each.rule == "R57")

    assert "computes the same values 5 times" in finding.title
    assert finding.change == (
        "Compute this part once for each value of the inputs, outside the loop that repeats the "
        "work, and keep its result (64.0 MiB at a time)."
    )


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


def test_of_rounds_that_change_their_results_nothing_is_said():
    (finding,) = again(of_arrays(changed_in_some_rounds))

    assert "computes the same values 16 times" in finding.title


def test_a_line_whose_first_rounds_differ_is_named():
    (finding,) = again(of_arrays(by_a_function_that_did_more_at_first))

    assert "computes the same values 158 times" in finding.title


def of_which_a_part_changes(cp):
    x, y = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        length = cp.elementwise("sqrt", x * x + y * y)
        cp.kernel("suppress", [length], [x])


def test_a_part_of_a_line_is_named_as_such_and_saves_nothing_in_one_kernel_for_the_line():
    found = findings(of_arrays(of_which_a_part_changes), small=True)
    fused = next(each for each in found if each.rule == "R08")
    (part,) = (each for each in found if each.rule == "R57")

    line = '`length = cp.elementwise("sqrt", x * x + y * y)`'
    assert part.title == f"A part of {line} (`multiply`) computes the same values 20 times."
    assert fused.title.startswith(line)
    assert part.saved_ns > part.further_ns == 0


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


def test_lines_that_do_other_work_too_are_not_said_to_compute_the_same():
    (finding,) = again(of_arrays(beside_other_work))

    assert finding.title.startswith("Parts of `")
    assert finding.title.endswith("compute the same values 20 times.")
    assert finding.change.startswith("Compute these parts once, before the loop")


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
