"""R18: loops that ask the GPU in each round whether to go on."""

import pytest

from tests.unit.advice.timed_programs import found, saved_ns, small

ROUNDS = 200


class Solver:
    """Steps of an iteration, whose error is 0 after some rounds."""

    def __init__(self, gpu, rounds=ROUNDS):
        self.gpu, self.x, self.rounds, self.left = gpu, gpu.empty(8), 10 * rounds, rounds

    def step(self, size=1.0):
        self.left -= 1
        self.gpu.work_on_host(10e-6)
        self.gpu.launch("step", duration=5e-6, reads=[self.x], writes=[self.x], scalars=[size])

    def error(self):
        return self.gpu.copy_to_host(self.x) or max(self.left, 0)


def in_the_head(gpu):
    solver = Solver(gpu)
    while solver.error() > 0:
        solver.step()


def by_a_name(gpu):
    solver, gap = Solver(gpu), 1.0
    while gap > 0:
        solver.step()
        gap = solver.error()


def by_a_break(gpu):
    solver = Solver(gpu)
    for _ in range(solver.rounds):
        solver.step()
        error = solver.error()
        if error == 0:
            break


def by_an_exception(gpu):
    solver = Solver(gpu)
    for _ in range(solver.rounds):
        solver.step()
        if solver.error() < 0:
            raise FloatingPointError
        if solver.left == 0:
            break


def by_an_assertion(gpu):
    solver = Solver(gpu)
    for _ in range(solver.rounds):
        solver.step()
        assert solver.error() >= 0
        if solver.left == 0:
            break


# The last line of a string that goes on has one more or one fewer quotes than the first.
KERNEL = ("""extern "C" __global__ void step(float* x) {
    if (x[0] < 0) { x[0] = 0; }  // It's positive.
    x[0] = 0.5f * x[0]; }""", "step")  # fmt: skip


def below_the_source_of_a_kernel(gpu):
    solver = Solver(gpu)
    for _ in range(solver.rounds):
        solver.step()
        if solver.error() == 0:
            break


def residual(solver):
    return float(solver.error())


def by_a_function(gpu):
    solver = Solver(gpu)
    for _ in range(solver.rounds):
        solver.step()
        if residual(solver) == 0: break  # fmt: skip  # noqa: E701


def in_one_line(gpu):
    solver, gap = Solver(gpu), 1.0
    while gap > 0: solver.step(); gap = float(solver.error())  # fmt: skip  # noqa: E701, E702


def less_often(gpu):
    solver, gap, k = Solver(gpu), 1.0, 0
    while gap > 0:
        solver.step()
        k += 1
        if k % 10 == 0:
            gap = solver.error()


def that_sets_the_next_step(gpu):
    solver, gap = Solver(gpu), 1.0
    while gap > 0:
        solver.step(gap)
        gap = solver.error()


def that_is_logged_in_the_same_line(gpu):
    solver, gap, log = Solver(gpu), 1.0, []
    while gap > 0:
        solver.step()
        gap = float(solver.error()); log.append(gap)  # fmt: skip  # noqa: E702


def that_is_logged_too(gpu):
    solver, gap, log = Solver(gpu), 1.0, []
    while gap > 0:
        solver.step()
        gap = solver.error()
        log.append(gap)


def that_does_more_when_it_leaves(gpu):
    solver = Solver(gpu)
    for _ in range(solver.rounds):
        solver.step()
        if solver.error() == 0:
            solver.step()
            break


def of_a_line_search(gpu):
    for _ in range(50):
        solver = Solver(gpu, rounds=4)
        while solver.error() > 0:
            solver.step()


def of_a_few_rounds(gpu):
    solver, gap = Solver(gpu, rounds=60), 1.0
    while gap > 0:
        solver.step()
        gap = solver.error()


@pytest.mark.parametrize(
    "program",
    [
        in_the_head,
        by_a_name,
        by_a_break,
        by_an_exception,
        by_an_assertion,
        below_the_source_of_a_kernel,
        by_a_function,
        in_one_line,
    ],
)
def test_a_loop_that_asks_whether_to_go_on_can_ask_less_often(program):
    (finding,) = found(program, "R18")

    assert " times too often whether to go on and waits " in finding.title
    assert finding.saved_ns == pytest.approx(saved_ns(program, less_often), rel=0.2)
    assert small(less_often, "R18") == []


@pytest.mark.parametrize(
    "program",
    [
        that_sets_the_next_step,
        that_is_logged_too,
        that_is_logged_in_the_same_line,
        that_does_more_when_it_leaves,
        of_a_few_rounds,
        of_a_line_search,
    ],
)
def test_a_loop_that_needs_the_value_in_each_round_is_not_told_to_ask_less_often(program):
    assert small(program, "R18") == []
