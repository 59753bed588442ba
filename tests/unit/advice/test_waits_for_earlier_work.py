"""R41: copies and synchronizations that wait for earlier work."""

import functools

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.programs import within, without_frames
from tests.unit.advice.timed_programs import (
    found,
    saved_ns,
    small,
    timed,
    with_cells,
    with_pinned_memory,
)

STEPS = 20
SCAN = "void cub::detail::scan::DeviceScanKernel"


def steps(gpu, *, read, ahead=0, host=400e-6, array=64):
    """Launch a step again and again; ``read`` its result each time, ``ahead`` steps later."""
    x = gpu.empty(array)
    for step in range(STEPS + ahead):
        if step < STEPS:
            gpu.launch("step", duration=1e-3, writes=[x])
        if step >= ahead:
            read(x)
        gpu.work_on_host(host)


def reads_each_step(gpu):
    steps(gpu, read=gpu.copy_to_host)


def reads_a_scalar(gpu):
    steps(gpu, read=gpu.copy_to_host, array=8)


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


def reads_one_step_later(gpu):
    steps(gpu, read=gpu.copy_to_host, ahead=1, host=1e-6)


def reads_pinned_memory_each_step(gpu):
    steps(gpu, read=lambda x: (gpu.copy_to_host(x, pinned=True), gpu.synchronize()))


def never_waits(gpu):
    steps(gpu, read=lambda _: None)


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


def selects(gpu, *, fetches=True, kernel="cupy_nonzero_kernel"):
    x, n = gpu.empty(1 << 20), gpu.empty(8)
    count, read = gpu.launch, gpu.copy_to_host
    for _ in range(STEPS):
        gpu.launch("step", duration=1e-3, writes=[x])
        _ = count(kernel, duration=1e-6, reads=[x], writes=[n]), fetches and read(n)
        gpu.work_on_host(400e-6)


def masked(gpu, *, counts=True):
    """Sum what a mask selects, by moving it to an array of its own or with zeros elsewhere."""
    x, mask, places, y = (gpu.empty(64 << 20) for _ in range(4))
    n = gpu.empty(8)

    def move():
        gpu.launch("cupy_copy__bool_int32", duration=40e-6, reads=[mask], writes=[places])
        gpu.launch(f"{SCAN}<int>(int)", duration=100e-6, reads=[places], writes=[places])
        gpu.work_on_host(10e-6)
        gpu.copy_to_host(n)
        gpu.launch("cupy_getitem_mask", duration=60e-6, reads=[x, mask, places], writes=[y])

    def keep():
        gpu.launch("cupy_where", duration=60e-6, reads=[x, mask], writes=[y])

    select = move if counts else keep
    for _ in range(STEPS):
        gpu.work_on_host(30e-6)
        gpu.launch("cupy_greater", duration=30e-6, reads=[x], writes=[mask])
        select()
        gpu.launch("cupy_sum", duration=30e-6, reads=[y], writes=[n])


def test_a_mask_needs_neither_its_count_nor_its_places_if_the_result_keeps_its_size():
    recording = without_frames(timed(masked), "masked.<locals>.move")
    finding = findings(recording)[0]
    kept = timed(lambda gpu: masked(gpu, counts=False))

    assert finding.rule == "R54"
    assert finding.saved_ns == pytest.approx(recording.duration_ns - kept.duration_ns, rel=0.1)
    assert [each for each in findings(kept, small=True) if each.rule == "R54"] == []


def test_an_operation_that_fetches_the_size_of_its_result_is_found():
    (finding,) = found(selects, "R54")

    measured = saved_ns(selects, lambda gpu: selects(gpu, fetches=False))
    assert finding.saved_ns == pytest.approx(measured, rel=0.2)
    assert "for the size of its result, in 19 calls." in finding.title
    assert [each for rule in ("R18", "R41") for each in small(selects, rule)] == []


def test_a_size_that_is_not_fetched_and_other_kernels_are_no_hidden_synchronization():
    assert small(lambda gpu: selects(gpu, fetches=False), "R54") == []
    for kernel in ("cupy_sum", "cupy_count_nonzero"):
        assert small(lambda gpu, kernel=kernel: selects(gpu, kernel=kernel), "R54") == []


@pytest.mark.parametrize("kernel", ["cupy_inclusive_scan_kernel", f"{SCAN}<float>(float)"])
def test_a_value_of_a_cumulative_sum_is_no_size(kernel):
    assert small(lambda gpu: selects(gpu, kernel=kernel), "R54") == []
    assert len(small(lambda gpu: selects(gpu, kernel=kernel), "R18")) == 1


def test_a_synchronization_is_found_and_removing_it_saves_what_was_predicted():
    (finding,) = found(reads_pinned_memory_each_step, "R41")

    measured = saved_ns(reads_pinned_memory_each_step, never_waits)
    assert finding.saved_ns == pytest.approx(measured, rel=0.2)
    assert "The copies" not in finding.reason
    assert finding.change == (
        "The host waits there for a copy from the GPU. Launch the next work before the wait, so "
        "that the GPU works while the host reads the result. The next copy then needs another "
        "buffer."
    )


def test_another_stream_is_told_to_wait_for_an_event():
    def hands_over(gpu):
        one, other = (gpu.Stream(non_blocking=True) for _ in range(2))
        x = gpu.empty(1 << 20)
        for _ in range(STEPS):
            with one:
                gpu.launch("make", duration=1e-3, writes=[x])
            one.synchronize()
            with other:
                gpu.launch("use", duration=1e-3, reads=[x])
            other.synchronize()
            gpu.work_on_host(400e-6)

    (first, *_) = found(hands_over, "R41")

    assert first.change.startswith("Wait only where the host needs the result")
    assert first.change.endswith("`other.wait_event(stream.record())`.")


def test_work_that_overlaps_takes_longer_than_the_wait_for_it():
    def waits_for_both(gpu):
        streams = [gpu.Stream(non_blocking=True) for _ in range(2)]
        x = [gpu.empty(1 << 20) for _ in streams]
        for _ in range(STEPS):
            for stream, array in zip(streams, x, strict=True):
                with stream:
                    gpu.launch("make", duration=1e-3, writes=[array], share=0.4, grid=(52,))
            gpu.synchronize()
            gpu.work_on_host(400e-6)
            gpu.launch("use", duration=1e-5, reads=x)

    (finding, *_) = small(waits_for_both, "R41")

    assert "that was launched before, mostly for `gpu.launch(" in finding.reason


def reports(gpu, *, every=1):
    """Train, and read a result to report the progress."""
    x = gpu.empty(64)
    for step in range(60):
        with gpuviz.range("step"):
            for name in ("forward", "backward", "update"):
                gpu.launch(name, duration=0.3e-3, writes=[x])
        if step % every == 0:
            gpu.copy_to_host(x)
            gpu.work_on_host(2e-3)


def tries_kernels_first(gpu, *, steps=60):
    """The first step, in which a library tries its kernels, waits for many."""
    x = gpu.empty(64)
    for step in range(steps):
        with gpuviz.range("step"):
            for _ in range(1 if step else 20):
                gpu.launch("forward", duration=0.3e-3, writes=[x])
                if step == 0:
                    gpu.copy_to_host(x)
                gpu.work_on_host(1e-3)


def test_waits_to_report_progress_and_of_warm_up_are_no_finding():
    assert len(small(reports, "R41")) == 1
    assert small(functools.partial(reports, every=12), "R41") == []
    assert len(small(functools.partial(tries_kernels_first, steps=1), "R41")) == 1
    assert small(tries_kernels_first, "R41") == []


def test_a_wait_during_which_the_gpu_stays_busy_saves_nothing():
    assert found(reads_one_step_later, "R41") == []
    (finding,) = small(reads_one_step_later, "R41")
    assert finding.reason.endswith(
        "The GPU is busy during the waits and hardly idle after them, so that removing them saves "
        "almost nothing."
    )


def tiles(gpu, *, slots=2):
    """Compute in slots that take turns, and wait for one only where the next tile needs it."""
    streams = [gpu.Stream(non_blocking=True) for _ in range(slots)]
    results = [gpu.empty(1 << 16) for _ in streams]
    for step in range(STEPS * slots):
        slot = step % slots
        streams[slot].synchronize()
        gpu.work_on_host(400e-6)
        with streams[slot]:
            gpu.launch("tile", duration=1e-3, writes=[results[slot]])
            gpu.copy_to_host(results[slot], pinned=True)


def in_slots(recording, count):
    """Return a recording whose copies use some slots of a block of pinned memory in turn."""
    kinds = recording.tables["activities"]["copy_kind"].to_pylist()
    copies = sum(kind in {"host_to_device", "device_to_host"} for kind in kinds)
    return with_pinned_memory(recording, [(0, each % count << 26) for each in range(copies)])


def waits_found(recording):
    return [each.title for each in findings(recording, small=True) if each.rule == "R41"]


@pytest.mark.parametrize(
    ("program", "buffers", "count"),
    [
        pytest.param(tiles, 2, 0, id="a buffer for each slot"),
        pytest.param(tiles, 1000, 1, id="a buffer for each tile"),
        pytest.param(lambda gpu: tiles(gpu, slots=1), 1, 1, id="one slot"),
        pytest.param(reads_pinned_memory_each_step, 1, 1, id="a wait right after the copy"),
    ],
)
def test_a_wait_for_the_buffer_that_the_next_copy_uses_is_needed(program, buffers, count):
    assert len(waits_found(in_slots(timed(program), buffers))) == count


def frames(gpu, *, slots=8, at_once=False):
    """Upload frames from a ring, and wait for a slot's upload before the host fills it again.

    Args:
        gpu: The GPU.
        slots: The slots of the ring.
        at_once: Whether the host waits right after each upload instead.
    """
    lanes = [(gpu.Stream(non_blocking=True), gpu.empty(32 << 20)) for _ in range(2)]
    uploaded = [None] * slots
    for number in range(4 * STEPS):
        slot = number % slots
        if uploaded[slot] is not None and not at_once:
            uploaded[slot].synchronize()
        gpu.work_on_host(50e-6)
        stream, frame = lanes[number % 2]
        with stream:
            gpu.copy_to_device(frame, pinned=True)
            uploaded[slot] = stream.record()
            if at_once:
                uploaded[slot].synchronize()
            gpu.launch("accumulate", duration=100e-6, writes=[frame])


def hands_over(gpu):
    """Upload a frame while the last one is used, and let the host wait before it is used."""
    uploading, computing = (gpu.Stream(non_blocking=True) for _ in range(2))
    frames = [gpu.empty(32 << 20) for _ in range(2)]
    for number in range(2 * STEPS):
        with uploading:
            gpu.copy_to_device(frames[number % 2], pinned=True)
            uploaded = uploading.record()
        with computing:
            if number:
                gpu.launch("prepare", duration=100e-6, writes=[frames[(number - 1) % 2]])
            uploaded.synchronize()
            gpu.launch("use", duration=100e-6, reads=[frames[number % 2]])


@pytest.mark.parametrize("slots", [8, None])
def test_a_wait_for_the_slot_of_a_ring_that_the_host_fills_next_is_needed(slots):
    """The slots are of one block, or allocated before the recording began: they are not known."""
    recording = timed(frames)

    assert waits_found(in_slots(recording, slots) if slots else recording) == []


@pytest.mark.parametrize(
    ("recorded", "line"),
    [
        pytest.param(
            lambda: in_slots(timed(frames), 1000),
            "`uploaded[slot].synchronize()`",
            id="memory that no other copy uses",
        ),
        pytest.param(
            lambda: timed(lambda gpu: frames(gpu, at_once=True)),
            "`uploaded[slot].synchronize()`",
            id="right after the upload",
        ),
        pytest.param(lambda: timed(hands_over), "`uploaded.synchronize()`", id="to use the array"),
    ],
)
def test_another_wait_for_an_upload_is_found(recorded, line):
    (title,) = waits_found(recorded())

    assert title.startswith(f"{line} waits ")


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


def uploads_a_table(gpu):
    table = gpu.empty(1 << 17)
    steps(gpu, read=lambda _: gpu.copy_to_device(table, blocking=True))


def uploads_a_table_beside_copies_within_the_gpu(gpu):
    table, x = gpu.empty(1 << 17), gpu.empty(1 << 17)
    steps(gpu, read=lambda _: (gpu.copy(x, table), gpu.copy_to_device(table, blocking=True)))


def uploads_a_table_and_reads_results(gpu):
    table = gpu.empty(1 << 17)
    steps(gpu, read=lambda x: (gpu.copy_to_device(table), gpu.copy_to_host(x)), array=4096)


@pytest.mark.parametrize("program", [uploads_a_table, uploads_a_table_beside_copies_within_the_gpu])
def test_uploads_that_wait_are_advised_to_copy_without_waiting(program):
    (finding,) = found(program, "R41")

    assert finding.change == (
        "Copy what never changes once, before the loop, and the rest without waiting: from pinned "
        "memory, asynchronously. Pass a number to the operation itself instead of an array of one "
        "element, or make the array on the GPU."
    )


def test_a_line_that_reads_as_well_is_advised_to_read_later():
    (finding,) = small(uploads_a_table_and_reads_results, "R41")

    assert finding.change.startswith("Keep the value on the GPU and read it")


def evolves(gpu, *, uploads=True):
    """Select parents by the scores of a population, on the host, and copy the choice back."""
    population, scores, chosen = (gpu.empty(4096) for _ in range(3))
    log = []
    for _ in range(20):
        gpu.launch("score", duration=1e-3, reads=[population], writes=[scores])
        values = gpu.copy_to_host(scores)
        parents = (values, gpu)
        if uploads:
            send(gpu, chosen, parents)
        else:
            log.append(parents)
        gpu.launch("cross", duration=1e-4, reads=[population, chosen], writes=[population])
        gpu.work_on_host(3e-4)


def send(gpu, array, _values):
    gpu.copy_to_device(array)


def test_what_is_computed_from_a_value_and_copied_to_the_gpu_is_needed_at_once():
    assert small(evolves, "R41") == []
    assert len(small(lambda gpu: evolves(gpu, uploads=False), "R41")) == 1


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
