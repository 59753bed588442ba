"""R74: arrays in reference cycles wait for the garbage collector."""

import gc
from contextlib import contextmanager
from functools import partial

import pyarrow as pa
import pytest

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.advice.programs import MIB

ROUNDS = 40
# A collection of everything, as CPython begins one by itself, but in the same place each time.
_by_itself = gc.collect


@contextmanager
def no_other_collections():
    """Leave collections to the program, each of which visits enough objects to be recorded."""
    gc.collect()
    gc.freeze()
    gc.disable()
    visited = [[number] for number in range(20_000)]
    try:
        yield visited
    finally:
        gc.enable()
        gc.collect()


def recorded(program, **options):
    """Return the recording of a program on the clock of the host, which collections have."""
    gpu = gpuviz.SimulatedGPU()
    with no_other_collections(), gpuviz.record(device=gpu, **options) as recorder:
        program(gpu)
        gpu.synchronize()
    return recorder.recording


def found(recording, rules=("R74",)):
    return [each for each in findings(recording, small=True) if each.rule in rules]


class Context:
    """What an operation keeps for later."""


def begun(gpu):
    arrays = gpu.empty(16 * MIB), gpu.empty(MIB)
    for each in arrays:
        gpu.fill(each)
    return arrays


def one_round(gpu, x, total, context):
    context.output = gpu.empty(16 * MIB)
    gpu.launch("apply", duration=1e-4, reads=[x], writes=[context.output])
    gpu.launch("reduce", duration=1e-4, reads=[context.output, total], writes=[total])


def in_rounds(gpu, *, cycle=False, collects=False, at_last=0):
    """Keep each output on a context, which refers to itself or does not.

    Args:
        gpu: The GPU.
        cycle: Whether the contexts refer to themselves.
        collects: Whether the program calls the collector in each round.
        at_last: The number of rounds at the end that the collector does not run in.
    """
    x, total = begun(gpu)
    for each in range(ROUNDS + at_last):
        context = Context()
        if cycle:
            context.own = context
        one_round(gpu, x, total, context)
        del context
        if each < ROUNDS and each % 4 == 3:
            _by_itself()
        if collects:
            gc.collect()


def made(gpu, x, *, cycle):
    context = Context()
    if cycle:
        context.own = context
    context.output = gpu.empty(16 * MIB)
    gpu.launch("apply", duration=1e-4, reads=[x], writes=[context.output])
    return context


def in_rounds_with_a_variable(gpu, *, cycle=False, every=4):
    """A variable keeps each output until the next one is there."""
    x, total = begun(gpu)
    for each in range(ROUNDS):
        context = made(gpu, x, cycle=cycle)
        gpu.launch("reduce", duration=1e-4, reads=[context.output, total], writes=[total])
        if each % every == every - 1:
            _by_itself()


def uses_all_again(gpu):
    """The outputs are needed until the collector frees them."""
    x, total = begun(gpu)
    kept = []
    for each in range(ROUNDS):
        context = Context()
        context.own = context
        one_round(gpu, x, total, context)
        kept.append(context)
        del context
        if each % 4 == 3:
            _by_itself()
    for each in kept:
        gpu.launch("again", duration=1e-5, reads=[each.output, total], writes=[total])
    kept.clear()
    _by_itself()


def in_trials(gpu, *, rounds, every=4, before=0):
    """A model in a cycle keeps its outputs until the program drops it.

    Args:
        gpu: The GPU.
        rounds: The rounds of each model.
        every: The rounds from one collection to the next.
        before: The rounds before the first one.
    """
    x, total = begun(gpu)
    since = before
    for _ in range(ROUNDS // rounds):
        model = Context()
        model.own, model.history = model, []
        if since == every:
            since = 0
            _by_itself()
        gpu.launch("initialize", duration=2e-3, reads=[x], writes=[total])
        gpu.copy_to_host(total)
        for _ in range(rounds):
            context = Context()
            one_round(gpu, x, total, context)
            model.history.append(context)
            del context
            since += 1
            if since == every + 1:
                since = 1
                _by_itself()
        del model


with_cycles = partial(in_rounds, cycle=True)


def left_to_cycles(recording, holder="a reference cycle"):
    """Return a recording with the holder of what is still allocated at its end."""
    events = recording.tables["memory_events"].to_pylist()
    size = {
        each["address"]: each["size"] if each["action"] == "alloc" else 0
        for each in events
        if each["action"] in {"alloc", "free_completed"}
    }
    rows = [
        {"device": 0, "address": each, "holder": holder}
        for each, left in size.items()
        if left == 16 * MIB
    ]
    held = pa.Table.from_pylist(rows, schemas()["held_blocks"])
    return Recording({**recording.tables, "held_blocks": held}, recording.manifest)


def test_arrays_in_cycles_wait_for_the_collector_and_without_cycles_they_are_freed():
    recording, fixed = left_to_cycles(recorded(with_cycles)), recorded(in_rounds)
    (finding,) = found(recording, ("R09", "R45", "R50", "R74"))

    assert found(fixed) == []
    assert finding.rule == "R74"
    assert finding.saved_bytes == recording.peak().bytes - fixed.peak().bytes > 16 * MIB
    assert finding.title == (
        f"{finding.saved_bytes // MIB}.0 MiB from `context.output = gpu.empty(16 * MIB)` is still "
        "allocated at the peak, and waits for the garbage collector."
    )
    assert finding.change.startswith("Break the cycle: an object or a closure")


def test_arrays_of_the_end_count_if_only_cycles_hold_them():
    recording, fixed = recorded(partial(with_cycles, at_last=20)), recorded(in_rounds)
    (finding,) = found(left_to_cycles(recording))

    assert finding.saved_bytes == recording.peak().bytes - fixed.peak().bytes >= 19 * 16 * MIB
    assert found(left_to_cycles(recording, "cache[3]")) == found(recording) == []


@pytest.mark.parametrize("every", [3, 4, 8])
def test_what_a_variable_keeps_until_the_next_one_is_there_is_not_saved(every):
    program = partial(in_rounds_with_a_variable, every=every)
    recording, fixed = recorded(partial(program, cycle=True)), recorded(program)
    (finding,) = found(recording)

    assert found(fixed) == []
    assert finding.saved_bytes == recording.peak().bytes - fixed.peak().bytes > 16 * MIB


@pytest.mark.parametrize(
    "program",
    [
        partial(in_rounds, cycle=True, collects=True),
        uses_all_again,
        partial(in_trials, rounds=5),
        partial(in_trials, rounds=4),
        partial(in_trials, rounds=4, before=2),
    ],
)
def test_what_the_program_has_kept_or_collects_itself_does_not_wait(program):
    assert found(left_to_cycles(recorded(program))) == []


def test_without_samples_of_the_host_nothing_is_known_of_collections():
    assert found(recorded(with_cycles, host_samples=False)) == []
