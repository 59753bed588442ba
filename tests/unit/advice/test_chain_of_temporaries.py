"""R08: elementwise operations that one kernel could do."""

from functools import partial

import pytest

from tests.unit.advice.elementwise import (
    RATE,
    SIZE,
    apply,
    chains,
    computes,
    fused,
    norm,
    summed,
    total,
    update,
)
from tests.unit.advice.programs import (
    MIB,
    View,
    recorded,
    saved,
)
from tests.unit.advice.timed_programs import saved_ns, timed


def by_lines(gpu, a, b, c):
    product = apply(gpu, "multiply", a, b)
    total = apply(gpu, "add", product, c)
    del product
    return apply(gpu, "sqrt", total)


def with_two_results(gpu, a, b, _):
    passed = apply(gpu, "multiply", a, b), apply(gpu, "add", a, b)
    return apply(gpu, "hypot", *passed), apply(gpu, "add", *passed)


def fused_with_two_results(gpu, a, b, _):
    results = gpu.empty(SIZE), gpu.empty(SIZE)
    gpu.launch("expression", duration=4 * SIZE / RATE, reads=[a, b], writes=results)
    return results


def fused_sum(gpu, a, b, _):
    result = gpu.empty(512)
    gpu.launch("squared_distance", duration=2 * SIZE / RATE, reads=[a, b], writes=[result])
    return result


def standardized(gpu, a, b, _):
    """A reduction between the lines: the array that both sides read is written in any case."""
    centred = apply(gpu, "subtract", a, b)
    squares = apply(gpu, "square", centred)
    variance = total(gpu, squares)
    scaled = apply(gpu, "true_divide", centred, variance)
    shifted = apply(gpu, "add", scaled, b)
    return apply(gpu, "sqrt", shifted)


def fused_before_and_after_the_reduction(gpu, a, b, _):
    centred = apply(gpu, "subtract", a, b)
    variance = gpu.empty(512)
    gpu.launch("variance", duration=SIZE / RATE, reads=[centred], writes=[variance])
    return apply(gpu, "", centred, variance, b)


def summed_beside_a_result(gpu, a, b, _):
    difference = apply(gpu, "subtract", a, b)
    norm = total(gpu, difference)
    return norm, apply(gpu, "square", difference)


def summed_twice(gpu, a, b, _):
    difference = apply(gpu, "subtract", a, b)
    return total(gpu, difference), total(gpu, apply(gpu, "square", difference))


def accumulated(gpu, a, b, c):
    update(gpu, c, apply(gpu, "multiply", a, b))


def fused_update(gpu, a, b, c):
    gpu.launch("expression", duration=4 * SIZE / RATE, reads=[c, a, b], writes=[c])


def accumulated_by_lines(gpu, a, b, c):
    product = apply(gpu, "multiply", a, b)
    update(gpu, c, product)


def transposed(array):
    return array


def accumulated_from_its_transpose(gpu, a, _b, c):
    update(gpu, c, apply(gpu, "multiply", transposed(c), a))


def accumulated_from_its_end(gpu, a, _b, c):
    """As with `cupy.flip(c)`, a view that begins at the last element."""
    update(gpu, c, apply(gpu, "multiply", View(c, SIZE - MIB), a))


def accumulated_from_one_element(gpu, a, _b, c):
    row = (c,)
    update(gpu, c, apply(gpu, "multiply", row[0], a))


def accumulated_in_a_part(gpu, a, b, _):
    total = gpu.empty(2 * SIZE)
    update(gpu, total, apply(gpu, "multiply", a, b))


def accumulated_after_a_write(gpu, a, b, c):
    product = apply(gpu, "multiply", a, b)
    gpu.copy(c, a)
    update(gpu, c, product)


def after_a_read_of_the_host(gpu, a, b, _):
    """Divide by a number that the host read, and that follows from the array itself."""
    difference = apply(gpu, "subtract", a, b)
    apply(gpu, "square", difference, size=512)
    gpu.copy_to_host(gpu.empty(8))
    return apply(gpu, "true_divide", difference)


def overwritten_meanwhile(gpu, a, b, _):
    product = apply(gpu, "multiply", a, b)
    gpu.copy(b, a)
    return apply(gpu, "sqrt", product)


def in_a_loop_over_lines(gpu, a, b, _):
    for _ in range(5):
        b = apply(gpu, "add", a, b)
        gpu.launch("reduce", duration=5e-5, reads=[b])
        a = apply(gpu, "sqrt", b)
        gpu.launch("reduce", duration=5e-5, reads=[a])
    return a


def broadcasts(gpu, a, b, _):
    return apply(gpu, "add", apply(gpu, "square", a, size=MIB), b)


def with_other_kernels(gpu, a, b, c):
    return apply(gpu, "", apply(gpu, "", apply(gpu, "", a), b), c)


def in_a_loop(gpu, a, b, _):
    for _ in range(5):
        a = apply(gpu, "add", a, b)
    return a


def with_an_unknown_kernel(gpu, a, b, _):
    return apply(gpu, "sqrt", stir(gpu, apply(gpu, "multiply", a, b)))


def stir(gpu, array):
    gpu.launch("by_pointers", duration=5e-5)
    return array


def test_a_chain_is_found_and_one_kernel_saves_what_was_predicted():
    before, after = computes(norm), computes(fused)
    (finding,) = chains(timed(before))

    assert finding.saved_ns == pytest.approx(saved_ns(before, after), rel=0.2)
    assert finding.saved_bytes == saved(before, after) == 64 * MIB
    assert finding.title == (
        '`return apply(gpu, "sqrt", apply(gpu, "add", apply(gpu, "multiply", a, b), c))` writes '
        "1.25 GiB to temporary arrays and reads them once."
    )
    assert finding.reason == (
        "`multiply`, `add`, `sqrt` take 3.58 ms in 30 launches. 20 arrays of them are only read by "
        "the next ones; 10 launches of one kernel would keep the elements in registers."
    )
    assert finding.change == (
        "Make one kernel of the expression, with `cupy.fuse` or `cupy.ElementwiseKernel`. Such as "
        '`cupy.ElementwiseKernel("float32 x0, float32 x1, float32 x2", "float32 out", '
        '"out = sqrt(((x0 * x1) + x2))", "fused")`.'
    )
    assert finding.certainty == "likely"
    assert chains(timed(after)) == []


@pytest.mark.parametrize(
    ("evaluate", "after"),
    [
        (by_lines, fused),
        (with_two_results, fused_with_two_results),
        (summed, fused_sum),
        (accumulated_by_lines, fused_update),
    ],
)
def test_operations_of_several_lines_and_their_reduction_are_one_kernel(evaluate, after):
    before, improved = computes(evaluate), computes(after)
    (finding,) = chains(timed(before))

    assert finding.saved_ns == pytest.approx(saved_ns(before, improved), rel=0.2)
    assert finding.saved_bytes == saved(before, improved)
    assert len(finding.lines) > 1
    assert "before it write" in finding.title
    assert finding.change.startswith("Make one kernel of these lines")


def test_what_a_reduction_reads_and_what_reads_its_result_are_two_kernels():
    before, improved = computes(standardized), computes(fused_before_and_after_the_reduction)
    after, reduction = chains(timed(before))

    both_ns = after.further_ns + reduction.further_ns
    assert both_ns == pytest.approx(saved_ns(before, improved), rel=0.2)
    assert after.further_bytes + reduction.further_bytes == saved(before, improved)
    assert "`true_divide`, `add`, `sqrt` take" in after.reason
    assert "`square`, `cupy_sum` take" in reduction.reason


def test_an_update_is_one_kernel_with_what_is_added():
    (finding,) = chains(timed(computes(accumulated)))

    assert finding.saved_ns == pytest.approx(
        saved_ns(computes(accumulated), computes(fused_update)), rel=0.2
    )
    assert finding.saved_bytes == SIZE
    assert finding.change.endswith(
        '"float32 x0, float32 x1, float32 x2", "float32 out", "out = (x2 + (x0 * x1))", "fused")`. '
        "Its output is the array that it updates."
    )


def ordered(gpu, a, b, c):
    return apply(gpu, "subtract", apply(gpu, "true_divide", c, a), b)


def with_a_function_of_its_own(gpu, a, b, _):
    return apply(gpu, "sqrt", apply(gpu, "hypot", a, b))


def test_the_code_keeps_the_order_of_the_arguments_and_is_left_out_if_it_is_unknown():
    (finding,) = chains(timed(computes(ordered)))
    (unknown,) = chains(timed(computes(with_a_function_of_its_own)))

    assert '"float32 x0, float32 x1, float32 x2", "float32 out", "out = ((x0 / x1) - x2)"' in (
        finding.change
    )
    assert unknown.change.endswith("with `cupy.fuse` or `cupy.ElementwiseKernel`.")


@pytest.mark.parametrize(
    "evaluate",
    [
        overwritten_meanwhile,
        in_a_loop_over_lines,
        broadcasts,
        with_other_kernels,
        in_a_loop,
        summed_beside_a_result,
        summed_twice,
        after_a_read_of_the_host,
        with_an_unknown_kernel,
        accumulated_from_its_transpose,
        accumulated_from_its_end,
        accumulated_from_one_element,
        accumulated_in_a_part,
        accumulated_after_a_write,
    ],
)
def test_what_looks_alike_is_no_finding(evaluate):
    assert chains(recorded(computes(evaluate))) == []


def test_at_most_four_functions_are_named():
    def long(gpu, a, b, _):
        f = partial(apply, gpu)
        return f("exp", f("sin", f("abs", f("sqrt", f("add", a, b)))))

    (finding,) = chains(timed(computes(long)))

    assert finding.reason.startswith("`add`, `sqrt`, `abs`, `sin` and others take ")
