"""R18: which statements around a read show that the program needs the value at once."""

import heapq
import linecache
from types import SimpleNamespace

import pytest

from tests.unit.advice.timed_programs import small

STEPS = 20
SMALL = -1.0


class Steps:
    """Steps of a simulation with a value on the GPU, which `read` copies to the host."""

    def __init__(self, gpu):
        self.gpu, self.x, self.verbose = gpu, gpu.empty(8), True

    def step(self, array=None):
        self.gpu.launch("step", duration=1e-3, reads=[array or self.x], writes=[self.x])
        self.gpu.work_on_host(4e-4)

    def read(self):
        value = self.gpu.copy_to_host(self.x)
        return 0.5 if value is None else value

    def scaled(self, length):
        self.gpu.launch("scale", duration=length * 1e-3, reads=[self.x], writes=[self.x])
        return self.x


def mean(values):
    return sum(values) / len(values)


def logs_if_asked(run):
    verbose = True
    log = []
    for _ in range(STEPS):
        run.step()
        if verbose: log.append(float(run.read()))  # fmt: skip  # noqa: E701


def logs_if_the_object_says_so(run):
    log = []
    for _ in range(STEPS):
        run.step()
        if run.verbose and log is not None: log.append(float(run.read()))  # fmt: skip  # noqa: E701


def logs_by_an_option(run):
    options = SimpleNamespace(verbose=True)
    log = []
    for _ in range(STEPS):
        run.step()
        if options.verbose: log.append(float(run.read()))  # fmt: skip  # noqa: E701


def keeps_the_best_of_what_it_appends(run):
    """Decide by what the third statement of a line has stored."""
    best, kept, errors = 1.0, 0, []
    for _ in range(STEPS):
        run.step(); errors.append(float(run.read()))  # fmt: skip  # noqa: E702
        if errors[-1] < best:
            best = errors[-1]
            kept += 1


def returns_in_one_line(run):
    def error():
        run.step(); value = run.read(); return value  # fmt: skip  # noqa: E702, RET504

    for _ in range(STEPS):
        if error() < SMALL:
            break


def expands_the_best_first(run):
    """Search with a queue: the value decides which array is next."""
    queue = [(0.0, 0, run.gpu.empty(8))]
    for step in range(STEPS):
        _, _, array = heapq.heappop(queue)
        run.step(array)
        value = run.read()
        heapq.heappush(queue, (value, step + 1, array))


def loops_over_the_best(run):
    """Choose arrays by a loop over what is computed from the values."""
    arrays = [run.gpu.empty(8) for _ in range(4)]
    for step in range(STEPS):
        run.step()
        values = run.read()
        order = [(step + round(values)) % 4, step % 4]
        for k in order[:1]:
            run.step(arrays[k])


class Flag:
    """An array of one element, which is true or false."""

    def __init__(self, gpu):
        self.gpu, self.x = gpu, gpu.empty(8)

    def __bool__(self):
        return bool(self.gpu.copy_to_host(self.x))


def stops_by_a_flag(run, flag):
    for _ in range(STEPS):
        run.step()
        if flag: break  # fmt: skip  # noqa: E701


def stops_by_a_flag_of_its_own(run):
    stops_by_a_flag(run, Flag(run.gpu))


def logs_every_second_step(run):
    log = []
    for step in range(2 * STEPS):
        run.step()
        if step % 2 == 0: log.append(float(run.read()))  # fmt: skip  # noqa: E701


def logs_all_but_the_first(run):
    log = []
    for step, _ in enumerate(range(STEPS)):
        run.step()
        log.append(float(run.read()) if step > 0 else 0.0)


def compares_after_the_loop(run):
    loss = 0.0
    for _ in range(STEPS):
        run.step()
        loss = run.read()
    if loss < SMALL:
        run.step()


def adds_up_for_a_test_after_the_loop(run):
    total = 0.0
    for _ in range(STEPS):
        run.step()
        total += run.read()
    if total / STEPS < SMALL:
        run.step()


def counts_what_it_has_kept(run):
    log = []
    for _ in range(STEPS):
        run.step()
        log.append(run.read())
        if len(log) > STEPS:
            return


def stops_in_one_line(run):
    for _ in range(STEPS):
        run.step()
        if float(run.read()) < SMALL: break  # fmt: skip  # noqa: E701


def stops_by_an_array_in_one_line(run):
    log = []
    for _ in range(STEPS):
        run.step()
        small = run.read()
        if small < SMALL: log.append(float(small))  # fmt: skip  # noqa: E701


def adapts_its_step(run):
    width = 1.0
    for _ in range(STEPS):
        run.step()
        error = run.read()
        width = width / 2 if error > 1 else width * 2


def adapts_its_step_in_the_read(run):
    width = 1.0
    for _ in range(STEPS):
        run.step()
        width *= 0.5 if float(run.read()) > 1 else 2.0


def matches(run):
    for _ in range(STEPS):
        run.step()
        flag = run.read()
        match flag:
            case 1:
                return


def stops_in_several_lines(run):
    for step in range(STEPS):
        run.step()
        error = run.read()
        if (
            step > STEPS
            or error < SMALL
        ):  # fmt: skip
            return


def advances_the_time(run):
    time = 0.0
    while time < STEPS:
        run.step()
        width = 2 * run.read()
        time += width


def passes_its_history_on(run):
    history = []
    for _ in range(STEPS):
        run.step()
        history.append(run.read())
        if mean(history) < SMALL:
            return


def stops_by_a_mean_of_its_history(run):
    history = []
    for _ in range(STEPS):
        run.step()
        history.append(run.read())
        recent = mean(history[-3:])
        if recent < SMALL:
            return


def repeats_as_often(run):
    for _ in range(STEPS):
        run.step()
        count = int(run.read() * 4)
        for _ in range(count):
            run.step()


def allocates_as_much(run):
    empty = run.gpu.empty
    for _ in range(STEPS):
        run.step()
        count = int(run.read() * 1024)
        kept = empty(count)
        run.step(kept)


def uses_the_first_ones(run):
    parts = [run.gpu.empty(1024) for _ in range(4)]
    for _ in range(STEPS):
        run.step()
        count = int(run.read() * 4)
        for part in parts[:count]:
            run.step(part)


def chooses_an_array(run):
    arrays = [run.gpu.empty(1024) for _ in range(16)]
    for step in range(STEPS):
        run.step()
        chosen = int(run.read() * 2 * step * step) % 16
        run.step(arrays[chosen])


class Meter:
    """Values that a program has read."""

    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)

    @property
    def last(self):
        return self.values[-1]


class Relaxation:
    """A solver that keeps its residual, and the method of which a loop calls."""

    def __init__(self, run):
        self.run, self.residual = run, 1.0

    def relax(self):
        self.run.step()
        self.residual = self.run.read()


def relaxes_until_it_is_small(run):
    solver = Relaxation(run)
    steps = 0
    while solver.residual > SMALL and steps < STEPS:
        solver.relax()
        steps += 1


def relaxes_as_often(run):
    solver = Relaxation(run)
    for _ in range(STEPS):
        solver.relax()


def asks_a_meter(run):
    meter = Meter()
    for _ in range(STEPS):
        run.step()
        meter.update(run.read())
        if meter.last < SMALL:
            return


def asks_a_meter_after_the_loop(run):
    meter = Meter()
    for _ in range(STEPS):
        run.step()
        meter.update(run.read())
    if meter.last < SMALL:
        run.step()


def checks_much_later(run):
    values = []
    for step in range(STEPS):
        run.step()
        value = run.read()
        values.append(step)
        values.append(step)
        values.append(step)
        values.append(step)
        values.append(step)
        values.append(step)
        values.append(step)
        values.append(step)
        values.append(step)
        if value < SMALL:
            return


def looks_at_what_it_kept(run):
    values = []
    for _ in range(STEPS):
        run.step()
        value = run.read()
        values.append(value)
        if values[-1] < SMALL:
            return


def looks_up_what_to_do(run):
    steps = {0: run.step, 1: run.step}
    for _ in range(STEPS):
        run.step()
        state = int(run.read())
        steps[state]()


def counts_states(run):
    counts = [0, 0]
    for _ in range(STEPS):
        run.step()
        state = int(run.read())
        counts[state] += 1


def goes_along_a_direction(run):
    """Stop by what the second read returns, which the GPU computes with the first."""
    for _ in range(STEPS):
        run.step()
        length = run.gpu.copy_to_host(run.x) or 0.5
        rest = run.scaled(length)
        error = run.gpu.copy_to_host(rest) or 0.5
        if error < SMALL:
            break


def compares_both(run):
    for _ in range(STEPS):
        run.step()
        length = run.gpu.copy_to_host(run.x) or 0.5
        rest = run.scaled(length)
        error = run.gpu.copy_to_host(rest) or 0.5
        if error < SMALL * length:
            break


MODULE = """
def goes_on(solver):
    while solver.residual > 0:
        solver.relax()

def main(solver):
    for _ in range(STEPS):
        solver.relax()
        {last}

main(solver)
"""


@pytest.mark.parametrize(("last", "is_needed"), [("pass", False), ("assert solver.residual", True)])
def test_what_other_functions_of_a_module_test_says_nothing_about_it(last, is_needed):
    lines = MODULE.format(last=last).splitlines(keepends=True)
    filename = f"module_{is_needed}.py"
    linecache.cache[filename] = (1, None, lines, filename)
    code = compile("".join(lines), filename, "exec")

    def program(gpu):
        exec(code, {"solver": Relaxation(Steps(gpu)), "STEPS": STEPS})  # noqa: S102 - own text

    assert (small(program, "R18") == []) == is_needed


@pytest.mark.parametrize(
    "program",
    [
        logs_if_asked,
        logs_if_the_object_says_so,
        logs_by_an_option,
        logs_every_second_step,
        logs_all_but_the_first,
        compares_after_the_loop,
        adds_up_for_a_test_after_the_loop,
        counts_what_it_has_kept,
        asks_a_meter_after_the_loop,
        counts_states,
        relaxes_as_often,
        goes_along_a_direction,
    ],
)
def test_a_value_that_decides_nothing_in_its_loop_can_be_read_later(program):
    assert len(small(lambda gpu: program(Steps(gpu)), "R18")) == 1


@pytest.mark.parametrize(
    "program",
    [
        stops_by_a_flag_of_its_own,
        stops_in_one_line,
        stops_by_an_array_in_one_line,
        adapts_its_step,
        adapts_its_step_in_the_read,
        matches,
        stops_in_several_lines,
        advances_the_time,
        passes_its_history_on,
        stops_by_a_mean_of_its_history,
        repeats_as_often,
        allocates_as_much,
        uses_the_first_ones,
        chooses_an_array,
        asks_a_meter,
        checks_much_later,
        looks_at_what_it_kept,
        looks_up_what_to_do,
        relaxes_until_it_is_small,
        expands_the_best_first,
        loops_over_the_best,
        compares_both,
        keeps_the_best_of_what_it_appends,
        returns_in_one_line,
    ],
)
def test_a_value_that_decides_about_the_next_step_is_needed_at_once(program):
    assert small(lambda gpu: program(Steps(gpu)), "R18") == []
