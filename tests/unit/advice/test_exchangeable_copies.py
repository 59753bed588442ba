"""R86: arrays that are copied in each round where their names could be swapped."""

import ast
from functools import partial

import pytest

from gpuviz.advice.findings import findings
from gpuviz.advice.source.copied_names import copied_names
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.programs import View, with_unknown_modes
from tests.unit.advice.training import as_torch, installed, named

ROUNDS, SIZE = 20, 16 * MI
COPY = "cupy_copy__float32_float32"


def levels(cp):
    return tuple(cp.uploaded(SIZE) for _ in range(3))


def copies_three_levels(cp):
    prev, now, nxt = levels(cp)
    for _ in range(ROUNDS):
        cp.kernel("step", [prev, now], [nxt])
        prev = now.copy()
        now = nxt.copy()
    float(now.sum())


def rotates_three_levels(cp):
    prev, now, nxt = levels(cp)
    for _ in range(ROUNDS):
        cp.kernel("step", [prev, now], [nxt])
        prev, now, nxt = now, nxt, prev
    float(now.sum())


def copies_into_three_levels(cp):
    prev, now, nxt = levels(cp)
    for _ in range(ROUNDS):
        cp.kernel("step", [prev, now], [nxt])
        prev[...] = now
        now[...] = nxt
    float(now.sum())


def copies_in_one_line(cp):
    prev, now, nxt = levels(cp)
    for _ in range(ROUNDS):
        cp.kernel("step", [prev, now], [nxt])
        prev, now = now.copy(), nxt.copy()
    float(now.sum())


def copies_a_new_array(cp):
    u = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        u_old = u.copy()
        u = u_old * 0.5
        u += u_old
    float(u.sum())


def renames_it(cp):
    u = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        u_old = u
        u = u_old * 0.5
        u += u_old
    float(u.sum())


def copies_before_a_function_that_writes_all(cp):
    u, u_old = cp.uploaded(SIZE), cp.empty(SIZE)
    for _ in range(ROUNDS):
        u_old[:] = u
        cp.elementwise("multiply", u_old, 0.5, out=u)
    float(u.sum())


def exchanges_before_it(cp):
    u, u_old = cp.uploaded(SIZE), cp.empty(SIZE)
    for _ in range(ROUNDS):
        u, u_old = u_old, u
        cp.elementwise("multiply", u_old, 0.5, out=u)
    float(u.sum())


def _copyto(cp, target, source):
    cp.copyto(target, source)


copy_to = installed(_copyto, "cupy/_manipulation/basic.py", "copyto")


def copies_by_a_function(cp):
    copyto = partial(copy_to, cp)
    u, u_old = cp.uploaded(SIZE), cp.empty(SIZE)
    for _ in range(ROUNDS):
        copyto(u_old, u)
        cp.elementwise("multiply", u_old, 0.5, out=u)
    float(u.sum())


def found(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R86"]


@pytest.mark.parametrize(
    ("copies", "instead", "exchange", "certainty"),
    [
        (copies_three_levels, rotates_three_levels, "prev, now, nxt = now, nxt, prev", "possible"),
        (
            copies_into_three_levels,
            rotates_three_levels,
            "prev, now, nxt = now, nxt, prev",
            "possible",
        ),
        (copies_a_new_array, renames_it, "u_old = u", "likely"),
        (
            copies_before_a_function_that_writes_all,
            exchanges_before_it,
            "u_old, u = u, u_old",
            "possible",
        ),
        (copies_by_a_function, exchanges_before_it, "u_old, u = u, u_old", "possible"),
    ],
)
def test_copies_are_found_and_swapping_names_saves_what_was_predicted(
    copies, instead, exchange, certainty
):
    before, after = of_arrays(copies), of_arrays(instead)
    (finding,) = found(before)

    measured = before.duration_ns - after.duration_ns
    assert finding.saved_ns == pytest.approx(measured, rel=0.1)
    assert finding.saved_bytes == before.peak().bytes - after.peak().bytes
    assert f"`{exchange}`" in finding.change
    assert finding.certainty == certainty
    assert found(after) == []


def test_several_copies_of_a_line_are_found():
    before, after = of_arrays(copies_in_one_line), of_arrays(rotates_three_levels)
    (finding,) = found(before)

    measured = before.duration_ns - after.duration_ns
    assert finding.saved_ns == pytest.approx(measured, rel=0.1)
    assert "`prev, now, nxt = now, nxt, prev`" in finding.change


def test_what_a_kernel_may_leave_out_is_named():
    (finding,) = found(of_arrays(copies_into_three_levels))

    assert finding.title == (
        "`prev[...] = now` and 1 more line copy 2.50 GiB from arrays that are not needed "
        "afterwards."
    )
    assert 'right if `cp.kernel("step", [prev, now], [nxt])` writes each element' in finding.change


def test_what_surely_writes_all_has_no_condition():
    (finding,) = found(of_arrays(copies_before_a_function_that_writes_all))

    assert "This is right if" not in finding.change


def reads_the_source_afterwards(cp):
    u, new = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        cp.kernel("step", [u], [new])
        u[...] = new
        float(new.sum())


def updates_the_source(cp):
    """The kernel needs what the array had before."""
    u, old = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        old[...] = u
        cp.kernel("step", [old, u], [u])
    float(u.sum())


def writes_the_interior(cp):
    """The border of the array stays, which the kernel does not write."""
    u, new = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        cp.gpu.launch("step", duration=1e-4, reads=[u.memory], writes=[View(new.memory)])
        u[...] = new
    float(u.sum())


def writes_some_elements(cp):
    u, new = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        few = {"grid": (SIZE // 128 - 1,), "block": (128,)}
        cp.gpu.launch("step", duration=1e-4, reads=[u.memory], writes=[new.memory], **few)
        u[...] = new
    float(u.sum())


def writes_where_a_mask_is(cp):
    u, new, mask = cp.uploaded(SIZE), cp.uploaded(SIZE), cp.uploaded(SIZE, "bool")
    for _ in range(ROUNDS):
        cp.kernel("cupy_copy_where__float32_bool_float32", [u, mask], [new])
        u[...] = new
    float(u.sum())


def scatters(cp):
    u, new = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        cp.kernel("cupy_scatter_update", [u], [new])
        u[...] = new
    float(u.sum())


def keeps_each_copy(cp):
    u, kept = cp.uploaded(SIZE), []
    for _ in range(ROUNDS):
        cp.kernel("step", kept[-1:], [u])
        kept.append(u.copy())
    for each in kept:
        float(each.sum())


def fills_different_arrays(cp):
    """As initial values, which nothing copies again."""
    for _ in range(ROUNDS):
        value = cp.uploaded(SIZE)
        state = cp.uploaded(SIZE)
        state[...] = value
        del value
    float(state.sum())


def copies_a_result_of_the_line(cp):
    u = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        u[...] = u * 0.5
    float(u.sum())


def makes_it_contiguous(cp):
    u = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        packed = u.T.copy()
        u = packed * 0.5
    float(u.sum())


def _solve(_, u):
    return u.copy()


solve = installed(_solve, "solvers/solve.py", "solve")


def copies_in_a_library(cp):
    u = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        u = solve(cp, u)
        u *= 0.5
    float(u.sum())


def copies_on_another_stream(cp):
    u, old = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        with cp.gpu.Stream():
            old[...] = u
        cp.kernel("step", [old], [u])
    float(u.sum())


def copies_a_few(cp):
    u, old = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(3):
        old[...] = u
        cp.kernel("step", [old], [u])
    float(u.sum())


def takes_turns_with_unknown_work(cp):
    u, old = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        old[...] = u
        cp.kernel("unknown", [], [])
        cp.kernel("step", [old], [u])
    float(u.sum())


def writes_when_something_is_reached(cp):
    """The copy of one round is needed, as that of a best result so far."""
    u, best = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for number in range(ROUNDS):
        cp.kernel("step", [best], [u])
        best[...] = u
        if number == ROUNDS // 2:
            float(u.sum())
    float(best.sum())


@pytest.mark.parametrize(
    "program",
    [
        reads_the_source_afterwards,
        updates_the_source,
        writes_the_interior,
        writes_some_elements,
        writes_where_a_mask_is,
        scatters,
        keeps_each_copy,
        fills_different_arrays,
        copies_a_result_of_the_line,
        makes_it_contiguous,
        copies_in_a_library,
        copies_on_another_stream,
        copies_a_few,
        takes_turns_with_unknown_work,
        writes_when_something_is_reached,
    ],
)
def test_copies_that_the_program_may_need_are_no_finding(program):
    assert found(of_arrays(program)) == []


def test_a_kernel_that_may_read_what_it_writes_is_no_finding():
    recording = with_unknown_modes(of_arrays(reads_the_source_of_the_last_round), "step")

    assert found(recording) == []


def _forward(cp, u, new):
    cp.kernel("step", [u], [new])


def trains(cp):
    u, new = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        named(_forward, "forward")(cp, u, new)
        u[...] = new
    float(u.sum())


def test_a_training_is_no_finding():
    recording = of_arrays(trains)

    assert len(found(recording)) == 1
    assert found(as_torch(recording)) == []


def reads_the_source_of_the_last_round(cp):
    prev, now = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        cp.kernel("step", [prev], [now])
        prev[...] = now
    float(now.sum())


def test_a_use_of_the_source_after_the_last_round_does_not_matter():
    (finding,) = found(of_arrays(reads_the_source_of_the_last_round))

    assert "`prev, now = now, prev`" in finding.change
    assert len(finding.evidence.rows) == ROUNDS - 1


def another_name_has_what_is_replaced(cp):
    _, now, nxt = levels(cp)
    prev = now
    for _ in range(ROUNDS):
        cp.kernel("step", [prev, now], [nxt])
        prev = now
        now = nxt.copy()
    float(now.sum())


def test_names_are_not_exchanged_if_another_name_has_the_array():
    (finding,) = found(of_arrays(another_name_has_what_is_replaced))

    assert "now, nxt = nxt, now" not in finding.change
    assert "as in `a, b = b, a`" in finding.change


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("prev = now.copy()", [("prev", "now")]),
        ("prev = now.clone()", [("prev", "now")]),
        ("prev = now.detach().clone()", [("prev", "now")]),
        ("prev = cp.copy(now)", [("prev", "now")]),
        ("self.prev = self.levels[0].copy()", [("self.prev", "self.levels[0]")]),
        ("state['old'][:, :] = state['u']", [("state['old']", "state['u']")]),
        ("prev.copy_(now, non_blocking=True)", [("prev", "now")]),
        ("cp.copyto(prev, now)", [("prev", "now")]),
        ("a, b = b.copy(), c.copy()", [("a", "b"), ("b", "c")]),
        ("a[...], b[...] = b, c", [("a", "b"), ("b", "c")]),
        ("prev = now.copy(); now = nxt.copy()", [("prev", "now"), ("now", "nxt")]),
        ("return now.copy()", [("", "now")]),
        # Views, other orders, and what a part of is copied.
        ("prev = now.T.copy()", []),
        ("prev = now.copy(order='F')", []),
        ("prev = now[::2].copy()", []),
        ("prev[1:] = now", []),
        ("prev[...] = now + 1", []),
        ("prev[mask] = now", []),
        ("cp.copyto(prev, now, where=mask)", []),
        ("prev = cp.ascontiguousarray(now)", []),
        ("prev = f(now).copy()", []),
        ("prev = now", []),
    ],
)
def test_names_of_plain_copies_are_those_in_the_text(text, names):
    assert copied_names(ast.parse(text)) == names
