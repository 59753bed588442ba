"""R43: the GPU is idle while the host computes."""

import itertools
import re
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from gpuviz.advice.findings import findings
from gpuviz.conclusions.wording import saving
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.advice.programs import within
from tests.unit.advice.timed_programs import found, saved_ns, small, timed, with_cells
from tests.unit.advice.training import installed

STEPS = 20


def chunks(gpu, *, host, kernel=200e-6, after_launch=False):
    x = gpu.empty(1 << 20)
    for _ in range(STEPS):
        if not after_launch:
            gpu.work_on_host(host)
        gpu.launch("filter", duration=kernel, writes=[x])
        if after_launch:
            gpu.work_on_host(host)
        gpu.synchronize()


def computes_between_chunks(gpu):
    chunks(gpu, host=1e-3)


def computes_nothing(gpu):
    chunks(gpu, host=1e-9)


def computes_meanwhile(gpu):
    chunks(gpu, host=150e-6, after_launch=True)


def launches_slowly(gpu):
    chunks(gpu, host=30e-6, kernel=10e-6)


def loads_once(gpu):
    chunks(gpu, host=1e-9)
    gpu.work_on_host(1.0)
    chunks(gpu, host=1e-9)


def compiles_each_kernel(gpu):
    for number in range(STEPS):
        gpu.work_on_host(1e-3)
        gpu.launch(f"kernel {number}", duration=1e-3)
        gpu.synchronize()


def starts_slowly(gpu):
    for step in range(STEPS):
        gpu.launch("step", duration=200e-6)
        gpu.synchronize()
        gpu.work_on_host(5e-3 if step else 1.0)


def test_work_between_chunks_is_found_and_without_it_the_program_is_as_much_faster_as_predicted():
    (finding,) = found(computes_between_chunks, "R43")

    assert finding.saved_ns == pytest.approx(
        saved_ns(computes_between_chunks, computes_nothing), rel=0.2
    )
    assert finding.title == (
        "The GPU is idle for 19.0 ms, 79 % of the time, while the host works between "
        '`gpu.synchronize()` and the next `gpu.launch("filter", duration=kernel, writes=[x])`.'
    )
    assert finding.reason == (
        "19 times the host spends 1.00 ms on average between two CUDA calls there, 19.0 ms in "
        "total, and has launched nothing that the GPU could do meanwhile."
    )
    assert finding.change == (
        "Do this work on the GPU, or while the GPU works: launch the next work before it, or do it "
        "in another thread. The saving is that of work that takes no time."
    )
    assert [line.source for line in finding.lines] == [
        "gpu.synchronize()",
        'gpu.launch("filter", duration=kernel, writes=[x])',
    ]
    assert finding.evidence.table == "idle_gaps"
    assert len(finding.evidence.rows) == STEPS - 1


def starts_a_library(gpu):
    """Prepare each kernel in steps, as cuBLAS and cuDNN do before its first launch."""
    for number in range(5):
        for _ in range(STEPS):
            workspace = gpu.empty(1 << 20)
            gpu.work_on_host(1e-3)
            gpu.synchronize()
        gpu.launch(f"gemm {number}", duration=1e-3, writes=[workspace])
        gpu.synchronize()


def prepares_and_steps(gpu):
    x = gpu.empty(1 << 20)
    for _ in range(STEPS):
        gpu.work_on_host(10e-3)
        gpu.launch("prepare", duration=200e-6, writes=[x])
        gpu.synchronize()
    for _ in range(5 * STEPS):
        gpu.launch("forward", duration=2e-3, reads=[x], writes=[x])
        gpu.launch("step", duration=1e-3, reads=[x], writes=[x])


@pytest.mark.parametrize("program", [computes_between_chunks, prepares_and_steps])
def test_the_idle_time_and_the_saving_are_shares_of_the_same_time(program):
    (finding,) = found(program, "R43")
    idle = re.search(r"is idle for (\S+ \S+), (\S+ %) of the time", finding.title)

    assert finding.is_of_warm_up == (program is prepares_and_steps)
    assert saving(finding).startswith(f"about {idle[1]}, {idle[2]} of the time")


@pytest.mark.parametrize(
    "program",
    [computes_meanwhile, launches_slowly, loads_once, compiles_each_kernel, starts_a_library],
)
def test_work_beside_the_gpu_launches_and_preparation_are_no_finding(program):
    assert small(program, "R43") == []


def test_time_between_notebook_cells_is_no_finding():
    recording = timed(computes_between_chunks)
    calls = recording.tables["api_calls"].to_pylist()
    launching = recording.tables["activities"]["correlation"].to_pylist()
    launches = [call["time"] for call in calls if call["correlation"] in launching]
    waits = [call["end"] for call in calls if call["end"] - call["time"] > 150_000]
    cells = list(zip(launches, waits, strict=True))

    in_cells = with_cells(recording, cells)
    in_one = with_cells(recording, [(0, -1)])

    assert [each for each in findings(in_cells, small=True) if each.rule == "R43"] == []
    assert [each.rule for each in findings(in_one)] == [each.rule for each in findings(recording)]


def test_a_slow_first_iteration_does_not_count_as_work_of_each():
    (finding,) = found(starts_slowly, "R43")

    assert finding.saved_ns == pytest.approx((STEPS - 2) * 5e6, rel=0.02)


def test_work_is_between_the_lines_of_the_innermost_common_function():
    def program(gpu):
        def step():
            gpu.synchronize()
            gpu.work_on_host(1e-3)

        for _ in range(STEPS):
            gpu.launch("step", duration=200e-6)
            step()

    (finding,) = found(program, "R43")

    assert "between `step()` and the next `gpu.launch(" in finding.title


def test_work_around_a_line_that_repeats_names_that_line():
    def program(gpu):
        for _ in range(STEPS):
            _ = gpu.launch("step", duration=200e-6), gpu.work_on_host(1e-3)

    (finding,) = found(program, "R43")

    assert finding.title.endswith(
        "within or between the runs of "
        '`_ = gpu.launch("step", duration=200e-6), gpu.work_on_host(1e-3)`.'
    )
    assert len(finding.lines) == 1


def test_work_before_the_round_of_a_loop_is_not_its_first_line_s():
    def program(gpu):
        for _ in range(STEPS):
            x = gpu.empty(1 << 20)
            gpu.launch("step", duration=200e-6, writes=[x])
            gpu.synchronize()
            gpu.work_on_host(1e-3)

    (finding,) = found(program, "R43")

    assert finding.title.endswith(
        "between `gpu.synchronize()` and the next `x = gpu.empty(1 << 20)`."
    )


def test_work_after_a_function_has_returned_is_not_in_its_line():
    def step(gpu):
        x = gpu.empty(1 << 20)
        gpu.launch("step", duration=200e-6, writes=[x])
        gpu.synchronize()

    def program(gpu):
        for _ in range(STEPS):
            step(gpu)
            gpu.work_on_host(1e-3)

    (finding,) = found(program, "R43")

    assert finding.title.endswith(
        "between `gpu.synchronize()` and the next `x = gpu.empty(1 << 20)`."
    )


def test_an_allocation_before_the_work_tells_where_it_is():
    def program(gpu):
        for _ in range(STEPS):
            x = gpu.empty(1 << 20)
            gpu.work_on_host(1e-3)
            gpu.launch("step", duration=200e-6, writes=[x])
            gpu.synchronize()

    (finding,) = found(program, "R43")

    assert finding.title.endswith(
        'between `x = gpu.empty(1 << 20)` and `gpu.launch("step", duration=200e-6, writes=[x])`.'
    )


def test_work_after_the_allocator_has_called_the_driver_has_lines_on_both_sides():
    def uploads(gpu):
        kept = []
        for _ in range(20):
            kept.append(gpu.empty(32 << 20))
            gpu.work_on_host(3e-3)
            gpu.copy_to_device(kept[-1], pinned=True)

    (finding,) = found(uploads, "R43")

    assert finding.title.endswith(
        "between `kept.append(gpu.empty(32 << 20))` and `gpu.copy_to_device(kept[-1], "
        "pinned=True)`."
    )


@pytest.mark.parametrize(("every", "count"), [(10, 1), (50, 0)])
def test_pauses_in_few_rounds_of_a_step_are_not_the_programs_work(every, count):
    def program(gpu):
        x = gpu.empty(1 << 20)
        for step in range(200):
            gpu.work_on_host(2e-3 if step % every == every - 1 else 1e-5)
            gpu.launch("filter", duration=2e-5, writes=[x])

    assert len(found(program, "R43")) == count


def with_samples(recording, *, of_every=1, state="working", holder="", frames=((), ())):
    """Return a recording in which each gap between two calls was sampled, or one of several.

    `frames` are those of the functions that the sampled line calls, and of its callers.
    """
    inside, callers = frames
    calls = sorted(recording.tables["api_calls"].to_pylist(), key=lambda call: call["time"])
    stack = max(recording.tables["stacks"]["id"].to_pylist()) + 1
    frame = {"id": 1000, "name": "sort_all", "filename": "train.py", "line": 30, "cell": 0}
    frame |= {"source": "numpy.sort(values)", "installed": 0, "assigned": ""}
    frame |= {"context": "", "context_line": 0}
    gaps = [(before["end"], after["time"]) for before, after in itertools.pairwise(calls)]
    rows = [
        {"time": begin, "end": end, "thread": calls[0]["thread"], "stack": stack, "state": state}
        | {"holder": 99, "samples": 1}
        for begin, end in [gap for gap in gaps if gap[1] - gap[0] > 250_000][::of_every]
    ]
    unnamed = {"module": "", "phase": "", "forward_frame": 0, "differentiable": 0}
    added = {
        "frames": [*inside, frame, *callers],
        "stacks": [
            {
                "id": stack,
                "frames": [each["id"] for each in (*inside, frame, *callers)],
                "user_frame": 1000,
                **unnamed,
            }
        ],
        "host_samples": rows,
        "threads": [{"id": 99, "name": holder}] if holder else [],
    }
    tables = dict(recording.tables)
    for name, new in added.items():
        more = pa.Table.from_pylist(new, schemas()[name])
        tables[name] = pa.concat_tables([tables[name], more]).unify_dictionaries()
    return Recording(tables, recording.manifest)


@pytest.mark.parametrize(
    ("state", "what", "advice"),
    [
        ("working", "runs `numpy.sort(values)`", "Do this work on the GPU"),
        ("waiting", "is waiting in `numpy.sort(values)`", "Let another thread wait"),
        ("gil", "is waiting for the GIL in `numpy.sort(values)`", "Only one thread of a process"),
        ("collection", "does garbage collection in `numpy.sort(values)`", "Call `gc.freeze()`"),
    ],
)
def test_the_line_that_was_sampled_is_blamed(state, what, advice):
    recording = with_samples(timed(computes_between_chunks), state=state)
    (finding,) = [each for each in findings(recording) if each.rule == "R43"]

    assert finding.title == f"The GPU is idle for 19.0 ms, 79 % of the time, while the host {what}."
    assert finding.change.startswith(advice)
    assert [line.source for line in finding.lines] == ["numpy.sort(values)"]


@pytest.mark.parametrize("states", [("working",), ("waiting",), ("working", "waiting")])
def test_a_data_loader_is_blamed_with_the_line_of_its_loop(states):
    unknown = {"cell": 0, "installed": 0, "assigned": "", "context": "", "context_line": 0}
    loader = {"id": 1001, "name": "_next_data", "line": 9, "source": "", **unknown}
    loader["filename"] = "/env/lib/python3.12/site-packages/torch/utils/data/dataloader.py"
    loop = {"id": 1002, "name": "train", "filename": "train.py", "line": 4, **unknown}
    loop["source"] = "for x, y in loader:"
    called_by = [loader | {"installed": 1}, loop]

    recording = with_samples(timed(computes_between_chunks), frames=((), called_by))
    parts = []
    for row in recording.tables["host_samples"].to_pylist():
        length = (row["end"] - row["time"]) // len(states)
        for number, state in enumerate(states):
            begin = row["time"] + number * length
            parts.append(row | {"time": begin, "end": begin + length, "state": state})
    samples = {"host_samples": pa.Table.from_pylist(parts, schemas()["host_samples"])}
    recording = Recording(recording.tables | samples, recording.manifest)
    (finding,) = [each for each in findings(recording) if each.rule == "R43"]

    assert finding.title.endswith(
        "while the host is getting a batch of the data loader in `for x, y in loader:`."
    )
    assert "num_workers" in finding.change
    assert [line.source for line in finding.lines] == ["for x, y in loader:"]


@pytest.mark.parametrize(
    ("file", "ms", "is_said"),
    [
        ("torch/optim/sgd.py", 1, False),
        ("torch/nn/functional.py", 4, True),
        ("numpy/lib/function_base.py", 1, True),
    ],
)
def test_what_a_library_needs_for_its_launches_is_no_work_to_move(file, ms, is_said):
    called = {"id": 1001, "name": "step", "line": 9, "cell": 0, "installed": 1, "source": ""}
    called |= {"assigned": "", "context": "", "context_line": 0}
    called["filename"] = f"/env/lib/python3.12/site-packages/{file}"
    recording = timed(lambda gpu: chunks(gpu, host=ms * 1e-3))

    found = findings(with_samples(recording, frames=([called], ())))
    assert [each.rule for each in found if each.rule == "R43"] == ["R43"] * is_said


def searches(gpu, *, rounds, of_every):
    """Launch by one line, which takes long in some rounds, as where cuDNN tries kernels."""
    for number in range(rounds):
        gpu.launch("prepare", duration=200e-6)
        library(gpu, number % of_every == 0)


def _library(gpu, is_new):
    gpu.launch("copy", duration=200e-6)
    if is_new:
        gpu.work_on_host(8e-3)
    gpu.launch("layer", duration=200e-6)


library = installed(_library, "torch/nn/modules/conv.py", "forward")


@pytest.mark.parametrize(("of_every", "is_said"), [(1, True), (5, True), (20, False)])
def test_what_a_library_does_in_few_runs_of_a_line_prepares_the_others(of_every, is_said):
    called = {"id": 1001, "name": "forward", "line": 9, "cell": 0, "installed": 1, "source": ""}
    called |= {"assigned": "", "context": "", "context_line": 0}
    called["filename"] = "/env/lib/python3.12/site-packages/torch/nn/functional.py"
    recording = timed(lambda gpu: searches(gpu, rounds=100, of_every=of_every))

    found = findings(with_samples(recording, frames=([called], ())), small=True)
    assert [each.rule for each in found if each.rule == "R43"] == ["R43"] * is_said


def steps(gpu, *, of_every):
    """Launch by two lines in turn, and stop before the second in some rounds."""
    for number in range(100):
        gpu.launch("first", duration=20e-6)
        if number % of_every == 0:
            gpu.work_on_host(4e-3)
        gpu.launch("second", duration=20e-6)


@pytest.mark.parametrize(
    ("of_every", "is_of_launch", "is_said"), [(1, True, True), (20, True, False), (20, False, True)]
)
def test_stalls_in_few_runs_of_a_line_that_launches_are_not_its_work(
    of_every, is_of_launch, is_said
):
    sampled = Sampled(timed(lambda gpu: steps(gpu, of_every=of_every)))
    other = sampled.stack(("save", 3, "write(values)"))
    for before, after in sampled.gaps:
        stack = after["stack"] if is_of_launch else other
        sampled.sample(before["thread"], before["end"], after["time"], stack=stack)

    assert len(sampled.idle()) == is_said


@pytest.mark.parametrize(
    ("file", "name", "is_made"),
    [
        ("torch/nn/init.py", "uniform_", True),
        ("torch/nn/modules/module.py", "Module.to", True),
        ("torch/nn/modules/module.py", "Module._call_impl", False),
        ("torch/nn/modules/module.py", "Module.__getattr__", False),
    ],
)
def test_modules_that_the_host_initializes_are_to_be_made_on_the_gpu(file, name, is_made):
    called = {"id": 1001, "name": name, "line": 9, "cell": 0, "installed": 1, "source": ""}
    called |= {"assigned": "", "context": "", "context_line": 0}
    called["filename"] = f"/env/lib/python3.12/site-packages/{file}"
    recording = timed(lambda gpu: chunks(gpu, host=4e-3))
    (finding,) = [
        each
        for each in findings(with_samples(recording, frames=([called], ())))
        if each.rule == "R43"
    ]

    assert finding.change.startswith("Create the modules on the GPU") == is_made


def test_each_line_that_takes_long_in_a_gap_has_its_own_time():
    recording = with_samples(timed(computes_between_chunks))
    rows = recording.tables["host_samples"].to_pylist()
    other = {"id": 2000, "frames": [1000], "user_frame": 1000, "module": "", "phase": ""}
    other |= {"forward_frame": 0, "differentiable": 0}
    split = [
        part
        for row in rows
        for part in (
            row | {"end": row["time"] + 600_000},
            row | {"time": row["time"] + 600_000, "state": "waiting", "stack": 2000},
        )
    ]
    tables = dict(recording.tables)
    stacks = pa.Table.from_pylist([other], schemas()["stacks"])
    tables["stacks"] = pa.concat_tables([tables["stacks"], stacks]).unify_dictionaries()
    tables["host_samples"] = pa.Table.from_pylist(split, schemas()["host_samples"])
    both = findings(Recording(tables, recording.manifest))
    titles = [each.title for each in both if each.rule == "R43"]
    saved = sum(each.further_ns for each in both if each.rule == "R43")

    assert [title.partition(" for ")[2].partition(",")[0] for title in titles] == [
        "11.4 ms",
        "7.60 ms",
    ]
    # Together they save no more than the gaps.
    assert saved <= 19e6


def test_gaps_that_were_not_sampled_blame_no_line():
    recording = with_samples(timed(computes_between_chunks), of_every=2)
    (finding,) = [each for each in findings(recording) if each.rule == "R43"]

    assert finding.title.startswith("The GPU is idle for 9.00 ms, 37 % of the time")


def test_waiting_for_a_thread_of_gpuviz_is_no_finding():
    program = timed(computes_between_chunks)

    for holder, count in (("loader", 1), ("gpuviz-pump", 0)):
        recording = with_samples(program, state="gil", holder=holder)
        assert [each.rule for each in findings(recording)].count("R43") == count


MAIN, HELPER, OTHER = 11, 77, 78
LINE = {"cell": 0, "installed": 0, "assigned": "", "context": "", "context_line": 0}
STACK = {"module": "", "phase": "", "forward_frame": 0, "differentiable": 0}


class Sampled:
    """A recording to which call stacks and samples of threads are added."""

    def __init__(self, recording):
        self.tables, self.manifest = dict(recording.tables), recording.manifest
        self.rows = []
        calls = self.tables["api_calls"].to_pylist()
        self.calls = sorted(calls, key=lambda call: call["time"])
        self.gaps = [
            (before, after)
            for before, after in itertools.pairwise(self.calls)
            if after["time"] - before["end"] > 250_000
        ]

    def stack(self, *frames, callers=()):
        """Add a stack of ``(function, line, source)``, innermost first, and return its id."""
        known = self.tables["frames"]["id"].to_pylist()
        first = max([*known, 3000]) + 1
        rows = [
            {"id": first + place, "name": name, "filename": "train.py", "line": line, **LINE}
            | {"source": source}
            for place, (name, line, source) in enumerate(frames)
        ]
        number = max([*self.tables["stacks"]["id"].to_pylist(), 3000]) + 1
        stack = {"id": number, "frames": [*(row["id"] for row in rows), *callers], **STACK}
        self._add("frames", rows)
        self._add("stacks", [stack | {"user_frame": first}])
        return number

    def callers_of(self, stack):
        """Return the frames of a stack without its innermost one."""
        stacks = {row["id"]: row["frames"] for row in self.tables["stacks"].to_pylist()}
        return stacks[stack][1:]

    def sample(self, thread, begin, end, *, stack=0, state="working"):
        row = {"time": begin, "end": end, "thread": thread, "stack": stack, "state": state}
        self.rows.append(row | {"holder": 0, "samples": 1})

    def on_threads(self, thread_of, *, without_stack=(), longer_ns=0):
        """Let calls be those of other threads, some without call stacks, whose calls are longer."""
        rows = self.tables["api_calls"].to_pylist()
        for row in rows:
            row["thread"] = thread_of(row)
            row["end"] += longer_ns if row["thread"] in without_stack else 0
            row["stack"] = 0 if row["thread"] in without_stack else row["stack"]
        self.tables["api_calls"] = pa.Table.from_pylist(rows, self.tables["api_calls"].schema)

    def idle(self):
        self._add("host_samples", sorted(self.rows, key=lambda row: row["time"]))
        recording = Recording(self.tables, self.manifest)
        return [each for each in findings(recording, small=True) if each.rule == "R43"]

    def launches(self):
        """Return the calls that launch work."""
        launched = set(self.tables["activities"]["correlation"].to_pylist())
        return [call for call in self.calls if call["correlation"] in launched]

    def _add(self, name, rows):
        more = pa.Table.from_pylist(rows, schemas()[name])
        self.tables[name] = pa.concat_tables([self.tables[name], more]).unify_dictionaries()


def trains(gpu):
    """Launch a forward pass, and a backward pass that another thread launches."""
    x = gpu.empty(1 << 20)
    for _ in range(STEPS):
        gpu.launch("forward", duration=100e-6, writes=[x])
        gpu.work_on_host(20e-6)
        gpu.launch("backward", duration=100e-6, writes=[x])
        gpu.synchronize()
        gpu.work_on_host(1e-3)


@pytest.mark.parametrize(
    ("begins_with", "own_synchronization", "count"),
    [
        pytest.param("forward", False, 0, id="for what the other thread launches"),
        pytest.param("synchronize", False, 0, id="just after the other thread has launched"),
        pytest.param("synchronize", True, 1, id="after an own call, for something else"),
    ],
)
def test_waiting_for_a_thread_that_launches_work_is_no_starvation(
    begins_with, own_synchronization, count
):
    sampled = Sampled(timed(trains))
    launches = {call["correlation"] for call in sampled.launches()[1::2]}
    syncs = {before["correlation"] for before, _ in sampled.gaps}
    others = launches if own_synchronization else launches | syncs
    stack = sampled.stack(("learn", 3, "loss.backward()"))
    for number, (before, after) in enumerate(sampled.gaps):
        forward = sampled.launches()[2 * number]
        begin = forward["end"] if begins_with == "forward" else before["end"]
        sampled.sample(MAIN, begin, after["time"], stack=stack, state="waiting")
    sampled.on_threads(lambda call: HELPER if call["correlation"] in others else MAIN)

    found_here = sampled.idle()

    assert len(found_here) == count
    assert all("is waiting in `loss.backward()`" in each.title for each in found_here)


def hands_over(*, waits=True, early_ns=0, callers=1, works_in_helper=False):
    """Return findings on gaps that end with work that a thread without Python code launches."""
    sampled = Sampled(timed(computes_between_chunks))
    launches = {call["correlation"] for call in sampled.launches()}
    stack = sampled.stack(("measure", 5, "values.sort()"))
    for before, after in sampled.gaps:
        begin, woken = before["end"], after["time"]
        for caller in range(callers):
            sampled.sample(MAIN + caller, begin, woken - early_ns - 5_000, stack=stack)
            state = "waiting" if waits else "working"
            until = after["end"] + 50_000
            sampled.sample(MAIN + caller, woken - early_ns, until, stack=stack, state=state)
        helper = "working" if works_in_helper else "waiting"
        sampled.sample(HELPER, begin, woken, state=helper)
    sampled.on_threads(
        lambda call: HELPER if call["correlation"] in launches else MAIN, without_stack=(HELPER,)
    )
    return sampled.idle()


def test_work_of_the_thread_that_hands_over_what_another_launches_is_blamed():
    (finding,) = hands_over()

    assert finding.title.endswith("while the host runs `values.sort()`.")
    assert finding.saved_ns == pytest.approx(
        saved_ns(computes_between_chunks, computes_nothing), rel=0.1
    )
    assert [line.source for line in finding.lines] == ["values.sort()"]


@pytest.mark.parametrize(
    "look_alike",
    [
        pytest.param({"waits": False}, id="a thread that goes on working"),
        pytest.param({"callers": 2}, id="two threads that might"),
        pytest.param({"works_in_helper": True}, id="a thread that had work"),
    ],
)
def test_work_beside_a_thread_that_waits_for_something_else_is_not_blamed(look_alike):
    assert hands_over(**look_alike) == []


def hands_over_and_launches(*, other="waiting"):
    """Return findings on work before launches of three threads at once, and what it takes."""

    def steps(gpu, *, host):
        arrays = [gpu.empty(1 << 20) for _ in range(3)]
        for _ in range(STEPS):
            gpu.work_on_host(host)
            for array in arrays:
                gpu.launch("filter", duration=100e-6, writes=[array])
            gpu.synchronize()

    sampled = Sampled(timed(partial(steps, host=5e-3)))
    stack = sampled.stack(("measure", 5, "values.sort()"))
    for before, after in sampled.gaps:
        begin, woken = before["end"], after["time"]
        sampled.sample(MAIN, begin, woken, stack=stack)
        sampled.sample(MAIN, woken, woken + 50_000, stack=stack, state="waiting")
        sampled.sample(HELPER, begin, woken, state="waiting")
        sampled.sample(OTHER, begin, woken, state=other)
    threads = itertools.cycle((HELPER, OTHER, MAIN))
    launches = [call["correlation"] for call in sampled.launches()]
    thread_of = dict(zip(launches, threads))  # noqa: B905 - threads do not end
    sampled.on_threads(
        lambda call: thread_of.get(call["correlation"], MAIN),
        without_stack=(HELPER, OTHER),
        longer_ns=5_000,
    )
    return sampled.idle(), saved_ns(partial(steps, host=5e-3), partial(steps, host=1e-9))


def test_the_thread_that_works_and_those_that_wait_for_it_begin_sooner_without_its_work():
    (finding,), true_ns = hands_over_and_launches()

    assert finding.saved_ns == pytest.approx(true_ns, rel=0.1)


def test_a_thread_with_work_of_its_own_begins_no_sooner():
    (finding,), true_ns = hands_over_and_launches(other="working")

    assert finding.saved_ns < 0.2 * true_ns


def test_a_thread_that_waits_long_before_the_other_launches_has_handed_nothing_over():
    def loads(gpu):
        chunks(gpu, host=8e-3)

    sampled = Sampled(timed(loads))
    launches = {call["correlation"] for call in sampled.launches()}
    stack = sampled.stack(("measure", 5, "values.sort()"))
    for before, after in sampled.gaps:
        begin, woken = before["end"], after["time"]
        sampled.sample(MAIN, begin, woken - 4_000_000, stack=stack)
        sampled.sample(MAIN, woken - 4_000_000, woken, stack=stack, state="waiting")
        sampled.sample(HELPER, begin, woken, state="waiting")
    sampled.on_threads(
        lambda call: HELPER if call["correlation"] in launches else MAIN, without_stack=(HELPER,)
    )

    assert sampled.idle() == []


def in_parts(sampled, stacks):
    """Sample some stacks in each gap, in equal parts."""
    for before, after in sampled.gaps:
        length = (after["time"] - before["end"]) // len(stacks)
        for place, stack in enumerate(stacks):
            begin = before["end"] + place * length
            sampled.sample(before["thread"], begin, begin + length, stack=stack)


def test_lines_of_one_function_in_the_same_gaps_are_one_finding_about_its_call():
    sampled = Sampled(timed(computes_between_chunks))
    call = ("train", 9, "for batch in batches():")
    stacks = [
        sampled.stack(("batches", 3 + place, source), call)
        for place, source in enumerate(("crop(image)", "flip(image)"))
    ]
    in_parts(sampled, [*stacks, stacks[1]])

    (finding,) = sampled.idle()

    assert finding.title == (
        "The GPU is idle for 19.0 ms, 79 % of the time, while the host runs "
        "`for batch in batches():`."
    )
    assert finding.saved_ns == pytest.approx(19e6, rel=0.02)
    assert [(line.source, line.amount) for line in finding.lines] == [
        ("for batch in batches():", "19.0 ms"),
        ("flip(image)", "12.7 ms"),
        ("crop(image)", "6.33 ms"),
    ]


def test_lines_of_the_function_that_launches_are_named_themselves():
    sampled = Sampled(timed(computes_between_chunks))
    callers = sampled.callers_of(sampled.gaps[0][1]["stack"])
    stacks = [
        sampled.stack(("chunks", 100 + place, source), callers=callers)
        for place, source in enumerate(("values.sort()", "values.sum()"))
    ]
    in_parts(sampled, [stacks[0], *stacks])

    (finding,) = sampled.idle()

    assert finding.title.endswith("while the host runs `values.sort()` and 1 more line.")
    assert [line.source for line in finding.lines] == ["values.sort()", "values.sum()"]


def test_lines_in_different_gaps_of_different_calls_are_two_findings():
    sampled = Sampled(timed(computes_between_chunks))
    callers = sampled.callers_of(sampled.gaps[0][1]["stack"])
    stacks = [
        sampled.stack((name, 3, source), ("train", line, call), callers=callers)
        for name, source, line, call in (
            ("load", "crop(image)", 9, "load()"),
            ("log", "write(line)", 12, "log()"),
        )
    ]
    for number, (before, after) in enumerate(sampled.gaps):
        sampled.sample(before["thread"], before["end"], after["time"], stack=stacks[number % 2])

    titles = [each.title.rpartition(" host ")[2] for each in sampled.idle()]

    assert sorted(titles) == ["runs `crop(image)`.", "runs `write(line)`."]


UPLOAD = 16 << 20
CUPY = "/env/lib/python3.12/site-packages/cupy/_creation/from_data.py"


def uploads(gpu, *, rate=11e9):
    """Upload an array in each step as `cupy.asarray` does it: through pinned memory."""
    total = gpu.empty(UPLOAD)
    for _ in range(STEPS):
        _ = (x := gpu.empty(UPLOAD)), gpu.work_on_host(UPLOAD / rate), gpu.copy_to_device(x, pinned=True)  # fmt: skip # noqa: E501
        gpu.launch("add", duration=20e-6, reads=[x, total], writes=[total])


def uploads_pinned(gpu):
    uploads(gpu, rate=1e15)


def in_cupy(program):
    return within(timed(program), CUPY, "asarray")


def idle_of(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R43"]


@pytest.mark.parametrize("is_sampled", [False, True])
def test_a_library_s_copy_to_pinned_memory_is_called_so(is_sampled):
    recording = in_cupy(uploads)
    if is_sampled:
        calls = recording.tables["api_calls"].to_pylist()
        launches = {row["correlation"]: row["stack"] for row in calls}
        copies = recording.tables["activities"].filter(pc.field("kind") == "memcpy")
        upload = launches[copies["correlation"][0].as_py()]
        rows = with_samples(recording).tables["host_samples"].to_pylist()
        samples = [row | {"stack": upload} for row in rows]
        table = pa.Table.from_pylist(samples, schemas()["host_samples"])
        recording = Recording({**recording.tables, "host_samples": table}, recording.manifest)
    (finding,) = idle_of(recording)

    assert "while the host copies an array to pinned memory, to upload it, in `_ =" in finding.title
    assert "cupyx.empty_pinned" in finding.change
    assert finding.saved_ns == pytest.approx(saved_ns(uploads, uploads_pinned), rel=0.1)
    assert idle_of(in_cupy(uploads_pinned)) == []


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(lambda: timed(uploads), id="a loop of the program's own"),
        pytest.param(
            lambda: in_cupy(lambda gpu: uploads(gpu, rate=1e9)), id="conversion of a list"
        ),
    ],
)
def test_other_work_before_an_upload_is_not_a_copy_to_pinned_memory(recording):
    (finding,) = idle_of(recording())

    assert "pinned memory" not in finding.title + finding.change


def by_another_thread(recording, *, waiting=(1,)):
    """Let a thread without Python code upload arrays, as XLA's, for which others wait."""
    tables = recording.tables
    uploaded = tables["activities"].filter(pc.field("kind") == "memcpy")["correlation"].to_pylist()
    calls = tables["api_calls"].to_pylist()
    line = calls[-2]["stack"]
    samples = []
    for before, row in itertools.pairwise(calls):
        if row["correlation"] in uploaded:
            row |= {"thread": 9, "stack": 0}
            span = {"time": before["end"], "end": row["time"], "samples": 1, "holder": 0}
            samples.append(span | {"thread": 9, "stack": 0, "state": "working"})
            samples += (
                span | {"thread": thread, "stack": line, "state": "waiting"} for thread in waiting
            )
    changed = {"api_calls": calls, "host_samples": samples}
    changed = {name: pa.Table.from_pylist(rows, schemas()[name]) for name, rows in changed.items()}
    return Recording({**tables, **changed}, recording.manifest)


def test_the_line_that_waits_for_a_thread_without_python_code_is_named():
    recording = by_another_thread(timed(uploads))
    (finding,) = idle_of(recording)

    assert "copies an array to pinned memory, to upload it, in `gpu.launch(" in finding.title
    assert "jax.device_put" in finding.change
    assert finding.saved_ns == pytest.approx(saved_ns(uploads, uploads_pinned), rel=0.1)


def test_a_thread_without_python_code_works_for_no_line_if_several_threads_run_python():
    recording = by_another_thread(timed(uploads), waiting=(1, 2))

    assert {work["text"] for work in recording.host_work().to_pylist()} == {"unknown code"}
