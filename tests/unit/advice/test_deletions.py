"""Where arrays can be deleted that a generator, a `with` block or the next round keeps."""

from contextlib import contextmanager, suppress
from functools import partial

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from tests.unit.advice.programs import MIB, found, saved


def filtered(gpu, *, deletes):
    for _ in range(3):
        image = gpu.empty(32 * MIB)
        gpu.launch("filter", duration=1e-4, writes=[image])
        yield image
        if deletes:
            del image


def adds_up(gpu, *, deletes=False):
    total = gpu.empty(32 * MIB)
    for image in filtered(gpu, deletes=deletes):
        gpu.launch("add", duration=1e-4, reads=[image, total], writes=[total])
        del image


def test_a_generator_keeps_what_it_yields():
    (finding,) = found(adds_up, "R45")

    assert finding.change.endswith(
        " The generator must not keep it either: `del` after its `yield`."
    )
    assert finding.saved_bytes == saved(adds_up, lambda gpu: adds_up(gpu, deletes=True)) > 0


def read_each(gpu, *, names):
    """Yield one array after the other, by a variable or without one."""
    for _ in range(3):
        if names:
            chunk = gpu.empty(32 * MIB)
            yield chunk
        else:
            yield gpu.empty(32 * MIB)


def reduces_each(gpu, *, deletes=False, names=True):
    for chunk in read_each(gpu, names=names):
        small = gpu.empty(8 * MIB)
        gpu.launch("reduce", duration=1e-4, reads=[chunk], writes=[small])
        if deletes:
            del chunk
        large = gpu.empty(64 * MIB)
        gpu.launch("expand", duration=1e-4, reads=[small], writes=[large])
        del small, large


def test_a_generator_that_waits_at_the_peak_must_not_name_what_it_yields():
    (finding,) = found(reduces_each, "R45")

    assert finding.change.endswith(
        " The generator must not keep it either until it goes on: yield it without a variable, as "
        "in `yield make()`."
    )
    assert saved(reduces_each, partial(reduces_each, deletes=True)) == 0
    fixed = partial(reduces_each, deletes=True, names=False)
    assert finding.saved_bytes == saved(reduces_each, fixed) == 32 * MIB


@contextmanager
def scratch(gpu):
    area = gpu.empty(32 * MIB)
    yield area


class Scratch:
    """An array for one block of statements."""

    def __init__(self, gpu):
        self.gpu = gpu

    def __enter__(self):
        self.area = self.gpu.empty(32 * MIB)
        return self.area

    def __exit__(self, *_exception):
        del self.area


def transforms(gpu, make, *, ends_early=False):
    result = gpu.empty(8 * MIB)
    with make(gpu) as area:
        gpu.launch("transform", duration=1e-4, writes=[area])
        gpu.launch("gather", duration=1e-4, reads=[area], writes=[result])
        if not ends_early:
            expands(gpu, result)
    if ends_early:
        del area
        expands(gpu, result)


def expands(gpu, result):
    large = gpu.empty(64 * MIB)
    gpu.launch("expand", duration=1e-4, reads=[result], writes=[large])


@pytest.mark.parametrize("make", [scratch, Scratch])
def test_a_with_block_keeps_its_array_until_it_ends(make):
    (finding,) = found(partial(transforms, make=make), "R45")

    assert finding.change == (
        "End the `with` block after "
        '`gpu.launch("gather", duration=1e-4, reads=[area], writes=[result])`, and delete its '
        "variable (`del`)."
    )
    fixed = partial(transforms, make=make, ends_early=True)
    assert finding.saved_bytes == saved(partial(transforms, make=make), fixed) == 32 * MIB


@contextmanager
def prepared(gpu, *, deletes=False):
    """Reach the peak before the block begins."""
    raw = gpu.empty(32 * MIB)
    small = gpu.empty(8 * MIB)
    gpu.launch("reduce", duration=1e-4, reads=[raw], writes=[small])
    if deletes:
        del raw
    large = gpu.empty(64 * MIB)
    gpu.launch("expand", duration=1e-4, reads=[small], writes=[large])
    yield large


def uses_what_is_prepared(gpu, *, deletes=False):
    with prepared(gpu, deletes=deletes) as large:
        gpu.launch("use", duration=1e-4, reads=[large])


def test_what_a_with_block_does_not_need_when_it_begins_is_deleted_where_it_is_made():
    (finding,) = found(uses_what_is_prepared, "R45")

    assert finding.change == (
        'Delete it (`del`) after `gpu.launch("reduce", duration=1e-4, reads=[raw], '
        "writes=[small])`."
    )
    deleting = partial(uses_what_is_prepared, deletes=True)
    assert finding.saved_bytes == saved(uses_what_is_prepared, deleting) == 32 * MIB


def keeps_the_best(gpu, *, temporary=False, overwrites=False):
    """Copy the state whenever it is better than before, and read the best of all at the end."""
    state, best = gpu.empty(32 * MIB), None
    for step in range(12):
        gpu.launch("train", duration=1e-4, reads=[state], writes=[state])
        if step in {2, 5, 11} and overwrites and best is not None:
            gpu.launch("copy", duration=1e-4, reads=[state], writes=[best])
        elif step in {2, 5, 11}:
            gpu.launch("copy", duration=1e-4, reads=[state], writes=[best := gpu.empty(32 * MIB)])
        if temporary and step == 3:
            large = gpu.empty(128 * MIB)
            gpu.launch("evaluate", duration=1e-4, reads=[state], writes=[large])
            del large
    gpu.launch("predict", duration=1e-4, reads=[best], writes=[state])


def test_the_best_so_far_is_deleted_right_before_a_better_one_is_made():
    (finding,) = found(keeps_the_best, "R45")

    line = (
        '`gpu.launch("copy", duration=1e-4, reads=[state], writes=[best := gpu.empty(32 * MIB)])`'
    )
    assert finding.change == (
        f"Delete it (`del`) before {line} makes the next one, or write the next one into it."
    )
    overwriting = partial(keeps_the_best, overwrites=True)
    assert finding.saved_bytes == saved(keeps_the_best, overwriting) == 32 * MIB


def test_what_may_turn_out_to_be_the_best_is_not_deleted_before_a_better_one():
    assert found(partial(keeps_the_best, temporary=True), "R45") == []


def attempt(gpu, size):
    batch = gpu.empty(size)
    gpu.launch("forward", duration=1e-4, writes=[batch])
    outputs = gpu.empty(size)
    gpu.launch("backward", duration=1e-4, reads=[batch, outputs], writes=[batch])


def finds_a_size(gpu):
    """Try batches from a large one on, until the memory suffices."""
    for size in (512 * MIB, 128 * MIB):
        with suppress(MemoryError):
            attempt(gpu, size)
            return


def test_what_a_failed_request_left_behind_might_have_been_used_again():
    small = gpuviz.SimulatedGPU(memory=800 * MIB, real_time=False)
    with gpuviz.record(device=small) as recorder:
        finds_a_size(small)
    recording = recorder.recording

    assert recording.peak().bytes == 512 * MIB
    assert [each.rule for each in findings(recording, small=True) if each.saved_bytes] == []
