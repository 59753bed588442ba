"""R08: expressions and the functions that they call."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.elementwise import apply, chains, computes, fused, norm, summed
from tests.unit.advice.programs import (
    saved,
    within,
    without_frames,
)
from tests.unit.advice.timed_programs import saved_ns, timed


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
