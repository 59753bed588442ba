"""R08: elementwise operations that one kernel could do."""

from functools import partial

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.programs import (
    MIB,
    View,
    recorded,
    saved,
    threads,
    within,
    without_frames,
)
from tests.unit.advice.timed_programs import saved_ns, timed

SIZE = 64 * MIB
FLOATS = SIZE // 4
# Of a kernel that waits for memory, in bytes per second.
RATE = 1.5e12


def apply(gpu, function, *reads, size=SIZE):
    """Return the result of an elementwise function, whose kernel waits for memory."""
    target = gpu.empty(size)
    kinds = "_".join(["float32"] * (1 + len(reads)))
    gpu.launch(
        f"cupy_{function}__{kinds}" if function else "expression",
        duration=max(sum(each.nbytes for each in reads) + size, MIB) / RATE,
        reads=reads,
        writes=[target],
        **threads(size // 4),
    )
    return target


def norm(gpu, a, b, c):
    return apply(gpu, "sqrt", apply(gpu, "add", apply(gpu, "multiply", a, b), c))


def fused(gpu, a, b, c):
    return apply(gpu, "", a, b, c)


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


def total(gpu, array):
    """Return a reduction of an array, whose kernel waits for memory."""
    result = gpu.empty(512)
    gpu.launch("cupy_sum", duration=array.nbytes / RATE, reads=[array], writes=[result])
    return result


def summed(gpu, a, b, _):
    difference = apply(gpu, "subtract", a, b)
    return total(gpu, apply(gpu, "square", difference))


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


def update(gpu, target, other):
    """Add an array to another one in place."""
    gpu.launch(
        "cupy_add__float32_float32_float32",
        duration=(2 * target.nbytes + other.nbytes) / RATE,
        reads=[target, other],
        writes=[target],
        **threads(target.nbytes // 4),
    )


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


def short(gpu, *_):
    small = apply(gpu, "", size=512)
    return apply(gpu, "sqrt", apply(gpu, "square", small, size=512), size=512)


def computes(evaluate, *, rounds=10):
    """Return a program that evaluates an expression."""

    def program(gpu):
        a, b, c = (gpu.empty(SIZE) for _ in "abc")
        gpu.launch("make", duration=1e-4, writes=[a, b, c])
        for _ in range(rounds):
            result = evaluate(gpu, a, b, c)
            gpu.launch("reduce", duration=5e-5, reads=[a])
        del result

    return program


def chains(recording):
    whole = recording
    for function in ("apply", "total", "update"):
        whole = without_frames(whole, function)
    return [each for each in findings(whole, small=True) if each.rule == "R08"]


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


def slowly(gpu, function, *reads):
    gpu.work_on_host(20e-6)
    return apply(gpu, function, *reads, size=MIB)


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


def test_launches_that_vanish_with_their_kernels_save_their_time_on_the_host():
    def one_by_one(gpu):
        x = gpu.empty(MIB)
        for _ in range(50):
            result = slowly(gpu, "exp", slowly(gpu, "sqrt", slowly(gpu, "square", x)))
            gpu.launch("stir", duration=2e-6, reads=[result], writes=[x])

    def at_once(gpu):
        x = gpu.empty(MIB)
        for _ in range(50):
            result = slowly(gpu, "", x)
            gpu.launch("stir", duration=2e-6, reads=[result], writes=[x])

    whole = without_frames(without_frames(timed(one_by_one), "apply"), "slowly")
    (finding,) = (each for each in findings(whole) if each.rule == "R08")

    assert finding.saved_ns == pytest.approx(saved_ns(one_by_one, at_once), rel=0.1)


def test_a_line_that_updates_an_array_is_one_kernel_in_each_round():
    def averages(gpu):
        average = gpu.empty(SIZE)
        gpu.launch("make", duration=1e-4, writes=[average])
        for _ in range(10):
            new = gpu.empty(SIZE)
            gpu.launch("make", duration=1e-4, writes=[new])
            average = apply(gpu, "add", apply(gpu, "sqrt", average), apply(gpu, "square", new))

    (finding,) = chains(recorded(averages))

    assert "10 launches of one kernel would keep" in finding.reason


def test_the_rounds_of_a_loop_on_one_line_are_kernels_of_their_own():
    def iterates(gpu, a, b, _):
        for _ in range(20): a = apply(gpu, "sqrt", apply(gpu, "add", a, b))  # fmt: skip # noqa: E701
        return a

    def sums(gpu, a, b, _):
        for _ in range(20): total(gpu, apply(gpu, "sqrt", apply(gpu, "add", a, b)))  # fmt: skip # noqa: E701

    updated, summed = (chains(recorded(computes(each, rounds=1))) for each in (iterates, sums))

    assert "20 arrays of them are only read by the next ones; 20 launches of" in updated[0].reason
    assert "40 arrays of them are only read by the next ones; 20 launches of" in summed[0].reason


def test_the_last_round_of_a_loop_adds_no_line_to_the_others():
    def updates(gpu):
        speed, place = gpu.empty(SIZE), gpu.empty(SIZE)
        gpu.launch("make", duration=1e-4, writes=[speed, place])
        for _ in range(10):
            speed = apply(gpu, "sqrt", apply(gpu, "square", speed))
            place = apply(gpu, "add", place, apply(gpu, "negative", speed))

    found = chains(recorded(updates))

    assert [len(each.lines) for each in found] == [1, 1]
    assert all("20 launches" in each.reason for each in found)


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


def test_short_kernels_do_not_wait_for_memory():
    (finding,) = chains(timed(computes(short, rounds=1)))

    assert (finding.saved_bytes, finding.saved_ns) == (512, 0)
    assert finding.reason == (
        "`square`, `sqrt` take 1.40 µs in 2 launches. 1 array of them is only read by the next "
        "ones; 1 launch of one kernel would keep the elements in registers."
    )


def test_at_most_four_functions_are_named():
    def long(gpu, a, b, _):
        f = partial(apply, gpu)
        return f("exp", f("sin", f("abs", f("sqrt", f("add", a, b)))))

    (finding,) = chains(timed(computes(long)))

    assert finding.reason.startswith("`add`, `sqrt`, `abs`, `sin` and others take ")


def test_an_expression_within_a_library_is_not_the_program_s_to_change():
    scipy = within(timed(computes(norm)), "/python3.12/site-packages/cupyx/scipy/special/_erf.py")

    assert chains(scipy) == []


def test_the_functions_that_are_methods_as_well_are_calls_of_the_program():
    own = without_frames(without_frames(timed(computes(summed)), "apply"), "total")
    module = "/python3.12/site-packages/cupy/_math/sumprod.py"
    methods, functions, others = (
        [each for each in findings(recording) if each.rule == "R08"]
        for recording in (own, within(own, module, "sum"), within(own, module, "nansum"))
    )

    assert [each.title for each in functions] == [each.title for each in methods] != []
    assert others == []


def sums(gpu, a, b, c):
    for _ in range(8):
        update(gpu, c, apply(gpu, "multiply", a, b))


def sums_over_lines(gpu, a, b, c):
    for _ in range(8):
        product = apply(gpu, "multiply", a, b)
        update(gpu, c, product)
        del product


def sums_of_one_array(gpu, a, _, c):
    for _ in range(8):
        update(gpu, c, a)


def one_kernel_for_all_rounds(gpu, a, b, c):
    gpu.launch("sum", duration=4 * SIZE / RATE, reads=[c, a, b], writes=[c])


def one_kernel_for_an_array(gpu, a, _, c):
    gpu.launch("sum", duration=3 * SIZE / RATE, reads=[c, a], writes=[c])


def used_in_each_round(gpu, a, b, c):
    for _ in range(8):
        update(gpu, c, apply(gpu, "multiply", a, b))
        total(gpu, c)


def of_its_own_value(gpu, a, _, c):
    for _ in range(8):
        update(gpu, c, apply(gpu, "multiply", a, c))


def of_other_arrays(gpu, a, b, c):
    for each in (a, b, a, b, a, b):
        update(gpu, c, each)


def of_what_is_made_meanwhile(gpu, a, b, c):
    for _ in range(8):
        gpu.launch("smooth", duration=SIZE / RATE, reads=[b], writes=[a])
        update(gpu, c, a)


def read_by_the_host_in_each_round(gpu, a, b, c):
    for _ in range(8):
        gpu.copy_to_host(b)
        update(gpu, c, a)


@pytest.mark.parametrize(
    ("program", "fused"),
    [
        (sums, one_kernel_for_all_rounds),
        (sums_over_lines, one_kernel_for_all_rounds),
        (sums_of_one_array, one_kernel_for_an_array),
    ],
)
def test_one_kernel_does_all_rounds_that_update_an_array(program, fused):
    (finding,) = chains(timed(computes(program)))

    assert finding.title.endswith("the same array 8 times in a row.")
    assert finding.saved_ns == pytest.approx(saved_ns(computes(program), computes(fused)), rel=0.2)


@pytest.mark.parametrize(
    "program",
    [
        used_in_each_round,
        of_its_own_value,
        of_other_arrays,
        of_what_is_made_meanwhile,
        read_by_the_host_in_each_round,
    ],
)
def test_rounds_that_one_kernel_cannot_do_are_not_joined(program):
    found = chains(timed(computes(program)))

    assert [each for each in found if "in a row" in each.title] == []


def blend(gpu, a, b):
    near = apply(gpu, "add", apply(gpu, "subtract", a, b), b)
    return apply(gpu, "multiply", near, a)


def of_a_function_in_several_lines(gpu, a, b, c):
    return blend(
        gpu,
        apply(gpu, "sqrt", apply(gpu, "add", a, c)),
        blend(gpu, apply(gpu, "square", b), apply(gpu, "negative", c)),
    )


def of_functions_on_several_lines(gpu, a, b, c):
    first = blend(gpu, a, b)
    return blend(gpu, first, c)


def around_a_function(gpu, a, b, _):
    return apply(gpu, "sqrt", blend(gpu, a, b))


def fused_pair(gpu, a, b, _):
    return apply(gpu, "", a, b)


@pytest.mark.parametrize(
    ("evaluate", "after", "arrays"),
    [
        (of_a_function_in_several_lines, fused, 9),
        (of_functions_on_several_lines, fused, 5),
        (around_a_function, fused_pair, 3),
    ],
)
def test_an_expression_and_the_functions_that_it_calls_are_one_kernel(evaluate, after, arrays):
    (finding,) = chains(timed(computes(evaluate)))

    assert finding.saved_ns == pytest.approx(saved_ns(computes(evaluate), computes(after)), rel=0.2)
    assert finding.saved_bytes == saved(computes(evaluate), computes(after))
    assert finding.reason.split(". ")[1].startswith(f"{10 * arrays} arrays of them")


def step(gpu, a, b):
    return apply(gpu, "add", apply(gpu, "sqrt", a), b)


def in_a_loop_over_a_function(gpu, a, b, _):
    for _ in range(6):
        a = step(gpu, a, b)
    return a


def test_the_rounds_of_a_loop_over_a_function_are_kernels_of_their_own():
    (finding,) = chains(recorded(computes(in_a_loop_over_a_function)))

    assert "60 launches of one kernel would keep" in finding.reason
    assert [each.source for each in finding.lines] == [
        'return apply(gpu, "add", apply(gpu, "sqrt", a), b)'
    ]


def limited(gpu, function, *reads):
    """Return the result of a kernel that takes as long for two arrays as for three."""
    target = gpu.empty(SIZE)
    kinds = "_".join(["float32"] * (1 + len(reads)))
    gpu.launch(
        f"cupy_{function}__{kinds}" if function else "expression",
        duration=max(4.8e-12 * FLOATS, (1 + len(reads)) * SIZE / 3e12),
        reads=reads,
        writes=[target],
        **threads(FLOATS),
    )
    return target


def limited_one_by_one(gpu, a, b, _):
    return limited(gpu, "sqrt", limited(gpu, "add", limited(gpu, "square", a), b))


def limited_at_once(gpu, a, b, _):
    return limited(gpu, "", a, b)


def test_one_kernel_takes_the_time_of_its_threads_once():
    programs = computes(limited_one_by_one), computes(limited_at_once)
    (finding,) = chains(without_frames(timed(programs[0]), "limited"))

    assert finding.saved_ns == pytest.approx(saved_ns(*programs), rel=0.05)
