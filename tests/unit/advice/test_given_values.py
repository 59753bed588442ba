"""R18: values that a function, an object or a library gets, which decides by them."""

from contextlib import nullcontext

import pytest

from tests.unit.advice.test_conditions import SMALL, STEPS, Steps
from tests.unit.advice.timed_programs import small
from tests.unit.advice.training import installed


class Stopper:
    """An object that is called with a value, and then says whether to stop."""

    def __init__(self):
        self.stops = False

    def __call__(self, value):
        self.stops = value < SMALL


def asks_what_it_has_called(run):
    stopper = Stopper()
    for _ in range(STEPS):
        run.step()
        value = run.read()
        stopper(value)
        if stopper.stops:
            break


def asks_later_what_it_has_called(run):
    stopper = Stopper()
    for _ in range(STEPS):
        run.step()
        value = run.read()
        stopper(value)
    if stopper.stops:
        run.step()


def values(run):
    for _ in range(STEPS):
        run.step()
        value = run.read()
        yield value


def stops_a_generator(run):
    for value in values(run):
        if value < SMALL:
            break


def goes_over_a_generator(run):
    log = []
    for value in values(run):
        log.append(value)  # noqa: PERF402 - as programs do


class Scheduler:
    """As PyTorch's `ReduceLROnPlateau`."""

    def __init__(self):
        self.rate = 1.0

    def step(self, value):
        self.rate = 0.5 if value < SMALL else 1.0


def changes_its_rate(run):
    scheduler = Scheduler()
    for _ in range(STEPS):
        run.step()
        loss = run.read()
        scheduler.step(loss)


def _minimize(function, callback=None):
    for _ in range(STEPS):
        function()
        if callback is not None:
            callback()


minimize = installed(_minimize, "scipy/optimize/_minimize.py", "minimize")


class Objective:
    """A function of an object, which a library calls."""

    def __init__(self, run):
        self.run = run

    def __call__(self):
        self.run.step()
        return self.run.read()


def minimizes_an_object(run):
    error = Objective(run)
    minimize(error)


def minimizes_a_lambda(run):
    error = Objective(run)
    minimize(lambda: error())  # noqa: PLW0108 - as programs do


def logs_in_a_callback(run):
    log = []

    def add():
        log.append(run.read())

    minimize(run.step, callback=add)


class Kernel:
    """A kernel that CuPy or Numba launches."""

    def __init__(self, run):
        self.run = run

    def __call__(self, grid, block, arguments):
        del arguments
        run = self.run
        run.gpu.launch("kernel", duration=1e-5, grid=grid, block=block, writes=[run.x])

    def __getitem__(self, shape):
        return lambda *arguments: self((shape[0],), (shape[1],), arguments)


def launches_as_many_blocks(run):
    kernel = Kernel(run)
    for _ in range(STEPS):
        run.step()
        count = int(run.read() * 1024)
        kernel(((count + 127) // 128,), (128,), (run.x, count))


def launches_as_many_blocks_of_numba(run):
    kernel = Kernel(run)
    for _ in range(STEPS):
        run.step()
        count = int(run.read() * 1024)
        blocks = count // 128 + 1
        kernel[blocks, 128](run.x)


def passes_it_to_a_kernel(run):
    kernel = Kernel(run)
    for _ in range(STEPS):
        run.step()
        scale = run.read()
        kernel((64,), (128,), (run.x, scale))


class Solver:
    """A solver whose method tells whether another one has left a small residual."""

    def __init__(self, run):
        self.run, self.residual = run, 1.0

    def relax(self):
        self.run.step()
        self.residual = self.run.read()

    def is_done(self):
        return self.residual < SMALL


def asks_a_method(run):
    solver, steps = Solver(run), 0
    while steps < STEPS and not solver.is_done():
        solver.relax()
        steps += 1


def statistics(run):
    run.step()
    found = {}
    found["error"] = run.read()
    return found


def stops_by_an_item(run):
    for _ in range(STEPS):
        found = statistics(run)
        if found["error"] < SMALL:
            break


def error_without_gradients(run):
    with nullcontext():
        run.step()
        error = run.read()
        run.step()
    return error


def stops_by_what_a_block_has_read(run):
    for _ in range(STEPS):
        if error_without_gradients(run) < SMALL:
            break


@pytest.mark.parametrize(
    "program",
    [
        asks_what_it_has_called,
        stops_by_what_a_block_has_read,
        stops_a_generator,
        changes_its_rate,
        minimizes_an_object,
        minimizes_a_lambda,
        launches_as_many_blocks,
        launches_as_many_blocks_of_numba,
        asks_a_method,
        stops_by_an_item,
    ],
)
def test_what_gets_a_value_may_decide_by_it(program):
    assert small(lambda gpu: program(Steps(gpu)), "R18") == []


@pytest.mark.parametrize(
    "program",
    [
        asks_later_what_it_has_called,
        goes_over_a_generator,
        logs_in_a_callback,
        passes_it_to_a_kernel,
    ],
)
def test_a_value_that_is_only_kept_can_be_read_later(program):
    assert len(small(lambda gpu: program(Steps(gpu)), "R18")) == 1
