"""R41: copies and synchronizations that wait for earlier work."""

import functools

import pyarrow as pa
import pytest

from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.programs import within
from tests.unit.advice.timed_programs import (
    found,
    saved_ns,
    small,
    timed,
    with_cells,
)
from tests.unit.advice.waiting_programs import (
    STEPS,
    never_waits,
    reads_a_scalar,
    steps,
)


def reads_each_step(gpu):
    steps(gpu, read=gpu.copy_to_host)


def branches_on_a_scalar(gpu):
    x = gpu.empty(8)
    for _ in range(STEPS):
        gpu.launch("step", duration=1e-3, writes=[x])
        if gpu.copy_to_host(x):
            return
        gpu.work_on_host(400e-6)


def keeps_a_scalar_for_a_test(gpu):
    x = gpu.empty(8)
    for _ in range(STEPS):
        gpu.launch("step", duration=1e-3, writes=[x])
        error = gpu.copy_to_host(x)
        if error is not None and error < 0:
            return
        gpu.work_on_host(400e-6)


class Solver:
    """Steps until a test of a value that functions of it return, or for a number of steps."""

    def __init__(self, gpu):
        self.gpu, self.x, self.errors = gpu, gpu.empty(8), []

    def step(self):
        self.gpu.launch("step", duration=1e-3, writes=[self.x])
        self.gpu.work_on_host(400e-6)

    def error(self):
        value = self.gpu.copy_to_host(self.x)
        return 1.0 if value is None else value

    def norm(self): return self.gpu.copy_to_host(self.x)  # fmt: skip

    def steps_until_the_norm_is_small(self):
        for _ in range(STEPS):
            self.step()
            norm = self.norm()
            if norm is not None and norm < 0:
                return

    def has_converged(self):
        return self.error() < 0

    def relative_error(self):
        change = self.gpu.copy_to_host(self.x)
        relative = 1.0 if change is None else change / 2
        return relative + 1

    def steps_until_converged(self):
        for _ in range(STEPS):
            self.step()
            if self.has_converged():
                return

    def steps_while_the_last_error_is_large(self):
        for _ in range(STEPS):
            self.step()
            self.errors.append(self.relative_error())
            if self.errors[-1] < 0:
                return

    def is_given_to_a_library(self):
        def energy(_):
            self.step()
            return self.relative_error()

        return functools.reduce(lambda _, step: map_of_a_library(energy, step), range(STEPS), 0)

    def last_error_of(self, steps):
        error = None
        for _ in range(steps):
            self.step()
            error = self.error()
        return error

    def tests_the_last_error(self):
        if self.last_error_of(STEPS) < 0:
            self.step()

    def logs_its_errors(self):
        for _ in range(STEPS):
            self.step()
            self.errors.append(self.error())


def reads_between_phases(gpu, *, phases):
    x = gpu.empty(8)
    for _ in range(phases):
        for _ in range(STEPS):
            gpu.launch("step", duration=1e-3, writes=[x])
        gpu.copy_to_host(x)
        gpu.work_on_host(4e-3)


def map_of_a_library(function, argument):
    return function(argument)


def copies_much_after_nothing(gpu):
    x = gpu.empty(64 << 20)
    for _ in range(STEPS):
        gpu.copy_to_host(x)
        gpu.work_on_host(400e-6)


def test_a_copy_that_waits_for_a_kernel_is_found_and_reading_later_saves_what_was_predicted():
    (finding,) = found(reads_each_step, "R41")

    assert finding.saved_ns == pytest.approx(saved_ns(reads_each_step, never_waits), rel=0.2)
    assert finding.title == ("`read(x)` waits 19.0 ms for earlier work of the GPU.")
    assert finding.reason.startswith(
        "The host waits in 19 calls for work that was launched before, 19.0 ms of it for "
        '`gpu.launch("step", duration=1e-3, writes=[x])`. The copies themselves take '
    )
    assert finding.reason.endswith(
        "After the waits the GPU idles until the next launch; without them the work would end "
        "7.68 ms earlier."
    )
    assert finding.change == (
        "Keep the value on the GPU and read it when the program needs it: after the loop, or every "
        "few iterations. Until then the host can launch the next work."
    )
    assert (finding.certainty, finding.device) == ("possible", 0)
    assert [line.source for line in finding.lines][1] == (
        'gpu.launch("step", duration=1e-3, writes=[x])'
    )
    assert finding.evidence.table == "host_waits"
    assert len(finding.evidence.rows) == STEPS - 1


def test_a_scalar_that_is_read_in_each_round_saves_what_reading_it_later_does():
    (finding,) = found(reads_a_scalar, "R18")

    assert finding.saved_ns == pytest.approx(saved_ns(reads_a_scalar, never_waits), rel=0.2)
    assert finding.title == ("`read(x)` reads a scalar 19 times and waits 19.1 ms for the GPU.")
    assert small(reads_a_scalar, "R41") == []


@pytest.mark.parametrize("program", [branches_on_a_scalar, keeps_a_scalar_for_a_test])
def test_a_value_that_the_program_branches_on_is_needed_at_once(program):
    assert [each for rule in ("R18", "R41") for each in small(program, rule)] == []


@pytest.mark.parametrize(
    "run",
    [
        Solver.steps_until_converged,
        Solver.steps_until_the_norm_is_small,
        Solver.steps_while_the_last_error_is_large,
    ],
)
def test_a_value_is_needed_at_once_if_the_caller_of_its_function_branches_on_it(run):
    def program(gpu):
        run(Solver(gpu))

    assert [each for rule in ("R18", "R41") for each in small(program, rule)] == []


def test_a_library_needs_what_a_function_returns_that_it_gets():
    recording = timed(lambda gpu: Solver(gpu).is_given_to_a_library())
    frames = recording.tables["frames"]
    rows = [
        {**row, "installed": int(row["name"] == map_of_a_library.__name__)}
        for row in frames.to_pylist()
    ]
    changed = pa.Table.from_pylist(rows, frames.schema)
    of_a_library = Recording({**recording.tables, "frames": changed}, recording.manifest)

    assert "R18" in {each.rule for each in findings(recording, small=True)}
    assert "R18" not in {each.rule for each in findings(of_a_library, small=True)}


def test_a_value_between_two_phases_is_not_read_too_early():
    # The last phase's copy is followed by no work.
    assert small(lambda gpu: reads_between_phases(gpu, phases=3), "R41") == []
    assert len(small(lambda gpu: reads_between_phases(gpu, phases=4), "R18")) == 1


@pytest.mark.parametrize("run", [Solver.logs_its_errors, Solver.tests_the_last_error])
def test_what_a_program_only_logs_is_not_needed_at_once(run):
    def program(gpu):
        run(Solver(gpu))

    (finding,) = small(program, "R18")

    assert finding.saved_ns == pytest.approx(saved_ns(program, never_waits), rel=0.2)


def short_rounds(gpu, *, reads=True):
    """Launch kernels that take less than their launches, as on a GPU, and read their sum."""
    x, total = gpu.empty(1 << 20), gpu.empty(8)
    read = gpu.copy_to_host if reads else lambda _: None
    wait = gpu.synchronize if reads else lambda: None
    for _ in range(10 * STEPS):
        gpu.work_on_host(15e-6)
        gpu.launch("scale", duration=5e-6, reads=[x], writes=[x])
        gpu.work_on_host(15e-6)
        gpu.launch("sum", duration=6e-6, reads=[x], writes=[total])
        _ = read(total), wait()


def test_a_scalar_costs_a_copy_and_a_relaunch_also_where_launches_take_most_of_the_time():
    (finding,) = found(short_rounds, "R18")
    without = saved_ns(short_rounds, lambda gpu: short_rounds(gpu, reads=False))

    assert finding.saved_ns == pytest.approx(without, rel=0.2)
    assert "reads a scalar 199 times" in finding.title
    assert finding.reason.startswith("In 398 calls the host waits ")
    assert [each.rule for each in findings(timed(short_rounds))] == ["R27", "R18"]
    assert small(lambda gpu: short_rounds(gpu, reads=False), "R18") == []


def test_the_elements_of_an_array_are_one_read():
    def program(gpu):
        x = gpu.empty(8)
        for _ in range(2):
            gpu.launch("step", duration=1e-3, writes=[x])
            read_all(gpu, x)

    def read_all(gpu, x):
        for _ in range(STEPS):
            gpu.copy_to_host(x)

    assert small(program, "R18") == []


def test_a_wait_without_a_call_stack_is_no_finding():
    recording = timed(reads_each_step)
    stacks = pa.array([0] * recording.tables["api_calls"].num_rows, pa.uint32())
    calls = recording.tables["api_calls"]
    calls = calls.set_column(calls.column_names.index("stack"), "stack", stacks)
    unknown = Recording({**recording.tables, "api_calls": calls}, recording.manifest)

    assert [each.rule for each in findings(unknown, small=True) if each.rule == "R41"] == []


@pytest.mark.parametrize("program", [never_waits, copies_much_after_nothing])
def test_there_is_no_finding_without_a_wait_for_earlier_work(program):
    assert small(program, "R41") == []


def test_the_last_wait_of_a_notebook_cell_is_no_finding():
    recording = timed(reads_each_step)
    calls = recording.tables["api_calls"].to_pylist()
    ends = [call["end"] for call in calls if call["end"] - call["time"] > 900_000]
    starts = [0, *(end + 100_000 for end in ends)]

    in_cells = with_cells(recording, zip(starts, ends, strict=False))

    assert [each for each in findings(in_cells, small=True) if each.rule == "R41"] == []


def solve(gpu, x, info):
    gpu.launch("solve", duration=1e-3, writes=[x, info])
    gpu.copy_to_host(info)


def solves_in_each_step(gpu, *, uses_result):
    x, y, info = gpu.empty(1 << 20), gpu.empty(1 << 20), gpu.empty(64)
    for _ in range(STEPS):
        solve(gpu, x, info)
        gpu.work_on_host(400e-6)
        gpu.launch("next", duration=1e-3, reads=[x if uses_result else y], writes=[y])


@pytest.mark.parametrize("uses_result", [True, False])
def test_a_function_of_a_library_cannot_be_called_later_if_its_result_is_used_next(uses_result):
    recording = timed(lambda gpu: solves_in_each_step(gpu, uses_result=uses_result))
    frames, stacks = recording.tables["frames"], recording.tables["stacks"]
    rows = [{**row, "installed": int(row["name"] == "solve")} for row in frames.to_pylist()]
    library = {row["id"] for row in rows if row["installed"]}
    calls = [
        {**row, "user_frame": next((each for each in row["frames"] if each not in library), 0)}
        for row in stacks.to_pylist()
    ]
    changed = {
        "frames": pa.Table.from_pylist(rows, frames.schema),
        "stacks": pa.Table.from_pylist(calls, stacks.schema),
    }
    of_a_library = Recording({**recording.tables, **changed}, recording.manifest)

    waits = [each for each in findings(of_a_library, small=True) if each.rule == "R41"]
    assert len(waits) == (0 if uses_result else 1)
    assert "R41" in {each.rule for each in findings(recording, small=True)}


@pytest.mark.parametrize(
    ("name", "own"), [("synchronize", True), ("Event.synchronize", True), ("_lazy_init", False)]
)
def test_functions_of_torch_that_synchronize_are_the_programs_own_calls(name, own):
    recording = timed(lambda gpu: steps(gpu, read=lambda _: gpu.synchronize()))
    of_torch = within(recording, "/x/site-packages/torch/cuda/streams.py", name)

    found = {each.rule for each in findings(of_torch, small=True)}
    assert found & {"R22", "R41"} == ({"R22"} if own else {"R41"})
