"""R73: arrays of a failed attempt are kept while the program tries again within ``except``."""

from contextlib import suppress
from functools import partial

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.conclusions.ranking import all_conclusions
from tests.unit.advice.programs import MIB


def recorded(program):
    """Return the recording of a program on a device with 700 MiB."""
    gpu = gpuviz.SimulatedGPU(memory=700 * MIB, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        program(gpu)
        gpu.synchronize()
    return recorder.recording


def found(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R73"]


def scores(gpu, size, kept=None):
    batch = gpu.empty(size)
    gpu.copy_to_device(batch)
    hidden = gpu.empty(size)
    if kept is not None:
        kept.append(hidden)
    gpu.launch("layer", duration=1e-4, reads=[batch], writes=[hidden])
    result = gpu.empty(6 * size)
    gpu.launch("attention", duration=1e-4, reads=[batch, hidden], writes=[result])
    return result


def read(gpu, result):
    gpu.copy_to_host(result)


def tries_within(gpu, sizes=(128, 32)):
    try:
        return scores(gpu, sizes[0] * MIB)
    except MemoryError:
        return tries_within(gpu, sizes[1:])


def tries_with_a_name(gpu, size=128 * MIB):
    result = None
    try:
        result = scores(gpu, size)
    except (TypeError, ValueError):
        raise
    except MemoryError as error:
        shares = 3 + len(error.args)
        result = scores(gpu, size // shares)
    return result


def tries_afterwards(gpu, sizes=(128, 32)):
    for size in sizes:
        with suppress(MemoryError):
            return scores(gpu, size * MIB)
    return None


def has_its_own(gpu, size=128 * MIB):
    """What the function itself has would also be there after the block."""
    try:
        batch = gpu.empty(size)
        gpu.launch("read", duration=1e-4, writes=[batch])
        return scores(gpu, 6 * size)
    except MemoryError:
        return scores(gpu, size // 4)


def collects(gpu, size=128 * MIB):
    """A list keeps what the exception kept as well."""
    kept = []
    try:
        result = scores(gpu, size, kept)
    except MemoryError:
        result = scores(gpu, size // 4)
    read(gpu, result)
    return result


def goes_on(gpu, size=128 * MIB):
    """The arrays are those of the function that handles the exception, and used afterwards."""
    batch, hidden = gpu.empty(size), gpu.empty(size)
    gpu.copy_to_device(batch)
    try:
        scores(gpu, 6 * size)
    except MemoryError:
        result = gpu.empty(size)
        gpu.launch("slowly", duration=1e-4, reads=[batch], writes=[hidden, result])
    return result


class DivergedError(Exception):
    """A solver has failed."""


def solved(gpu, rate):
    state, velocity = gpu.empty(32 * MIB), gpu.empty(32 * MIB)
    gpu.fill(state)
    gpu.fill(velocity)
    for step in range(4):
        gpu.launch("step", duration=1e-4, reads=[state, velocity], writes=[state, velocity])
        if rate > 0.3 and step == 2:
            raise DivergedError
    return state


def checked(state, rate):
    if rate > 0.3:
        raise DivergedError
    return state


def solves_within(gpu, rate=1.0):
    try:
        return solved(gpu, rate)
    except DivergedError:
        return solves_within(gpu, rate / 2)


def solves_afterwards(gpu, rate=1.0):
    while True:
        with suppress(DivergedError):
            return solved(gpu, rate)
        rate /= 2


def checks_within(gpu, rate=1.0):
    """What fails is the check, after the function has returned its state."""
    try:
        state = solved(gpu, 0.1)
        return checked(state, rate)
    except DivergedError:
        again = checks_within(gpu, rate / 4)
        del state
        return again


def scores_several(gpu):
    """What the function got in earlier rounds is in its own list."""
    results = []
    try:
        for size in (8, 16, 128):
            result = scores(gpu, size * MIB)
            read(gpu, result)
            results.append(result)
    except MemoryError:
        last = scores(gpu, 16 * MIB)
        del result
        results.clear()
    return last


def widened(gpu, size):
    hidden = gpu.empty(size)
    gpu.launch("layer", duration=1e-4, writes=[hidden])
    wide = gpu.empty(6 * size)
    gpu.launch("repeat", duration=1e-4, reads=[hidden], writes=[wide])
    return wide


def widens_itself(gpu, size=128 * MIB):
    """The arrays are variables of the function that calls itself."""
    try:
        for _ in range(2):
            hidden = gpu.empty(size)
            gpu.launch("layer", duration=1e-4, writes=[hidden])
            wide = gpu.empty(6 * size)
            gpu.launch("repeat", duration=1e-4, reads=[hidden], writes=[wide])
            del hidden, wide
    except MemoryError:
        return widens_itself(gpu, size // 4)
    return None


def widens_until_none_is_left(gpu, sizes):
    try:
        hidden = gpu.empty(sizes[0])
        gpu.launch("layer", duration=1e-4, writes=[hidden])
        wide = gpu.empty(6 * sizes[0])
        gpu.launch("repeat", duration=1e-4, reads=[hidden], writes=[wide])
    except MemoryError:
        return widens_until_none_is_left(gpu, sizes[1:])
    return wide


def gives_up(kept, gpu):
    try:
        widens_until_none_is_left(gpu, [128 * MIB, 96 * MIB])
    except IndexError as error:
        kept.append(error)


def widens_afterwards(gpu, size=128 * MIB):
    while True:
        with suppress(MemoryError):
            return widened(gpu, size)
        size //= 4


def collects_itself(gpu, results, size=128 * MIB):
    try:
        part = gpu.empty(size)
        gpu.launch("layer", duration=1e-4, writes=[part])
        results.append(part)
        gpu.launch("repeat", duration=1e-4, reads=[part], writes=[gpu.empty(6 * size)])
    except MemoryError:
        return collects_itself(gpu, results, size // 4)
    return results


def collects_results(gpu):
    """The list of the caller keeps what failed attempts have added to it."""
    results = []
    collects_itself(gpu, results)
    gpu.synchronize()
    results.clear()


def compares_itself(gpu, size=128 * MIB):
    """The array is used after the next attempt."""
    try:
        hidden = gpu.empty(size)
        gpu.launch("layer", duration=1e-4, writes=[hidden])
        wide = gpu.empty(6 * size)
        gpu.launch("repeat", duration=1e-4, reads=[hidden], writes=[wide])
    except MemoryError:
        smaller = compares_itself(gpu, size // 4)
        gpu.launch("compare", duration=1e-4, reads=[hidden, smaller], writes=[smaller])
        return smaller
    return wide


def layer(gpu, size, reads=()):
    result = gpu.empty(size)
    gpu.launch("layer", duration=1e-4, reads=list(reads), writes=[result])
    return result


def one_item(gpu, item, parts):
    hidden = layer(gpu, item * 8 * MIB)
    wide = layer(gpu, item * 40 * MIB // parts, [hidden])
    return layer(gpu, item * 2 * MIB, [wide])


def resumed(gpu, items, parts):
    outputs = []
    try:
        while items:
            hidden = layer(gpu, items[0] * 8 * MIB)
            wide = layer(gpu, items[0] * 40 * MIB // parts, [hidden])
            outputs.append(layer(gpu, items[0] * 2 * MIB, [wide]))
            hidden = wide = None
            items.pop(0)
    except MemoryError:
        return outputs + resumed(gpu, items, parts * 2)
    return outputs


def resumes(gpu):
    """The outputs that the failed attempt has are a part of the result."""
    resumed(gpu, [4] * 6 + [14], 1)
    gpu.synchronize()


def resumes_afterwards(gpu):
    outputs, items, parts = [], [4] * 6 + [14], 1
    while items:
        with suppress(MemoryError):
            outputs.append(one_item(gpu, items[0], parts))
            items.pop(0)
            continue
        parts *= 2
    gpu.synchronize()


def resumes_by_name(gpu, items=(4, 4, 4, 14), parts=1):
    """The list of the results is of the attempt, and the result has what it refers to."""
    outputs = []
    for item in items:
        try:
            output = one_item(gpu, item, parts)
            outputs.append(output)
        except MemoryError:
            return outputs + resumes_by_name(gpu, items[len(outputs) :], parts * 2)
    return outputs


def collected(gpu, items, batch, done):
    try:
        while items:
            part = items[:batch]
            wide = layer(gpu, sum(part) * 10 * MIB)
            done.append(layer(gpu, sum(part) * 2 * MIB, [wide]))
            del wide, items[:batch]
    except MemoryError:
        return collected(gpu, items, batch // 2, done)
    return done


def warms_up(gpu):
    """Nothing but a list in the line of the caller refers to the results."""
    collected(gpu, [4] * 8 + [20] * 4, 4, [])


class Engine:
    """Keeps a buffer for each size."""

    def __init__(self, gpu):
        self.gpu, self.buffers = gpu, {}

    def run(self, size):
        try:
            self.buffers[size] = layer(self.gpu, size)
            result = layer(self.gpu, 5 * size, [self.buffers[size]])
        except MemoryError:
            return self.run(size // 2)
        return result

    def run_with_method(self, size):
        try:
            buffer = self.buffer(size)
            result = layer(self.gpu, 5 * size, [buffer])
        except MemoryError:
            return self.run_with_method(size // 2)
        return result

    def buffer(self, size):
        self.buffers[size] = layer(self.gpu, size)
        return self.buffers[size]


def keeps_buffers(gpu):
    """Nothing but an object in the line of the caller refers to the buffers."""
    Engine(gpu).run(128 * MIB)


def keeps_buffers_by_method(gpu):
    Engine(gpu).run_with_method(128 * MIB)


def divides(gpu, size=128 * MIB):
    try:
        hidden = layer(gpu, size)
        wide = layer(gpu, 5 * size, [hidden])
        del hidden
        return [layer(gpu, MIB, [wide])]
    except MemoryError:
        return divides(gpu, size // 2) + divides(gpu, size // 2)


@pytest.mark.parametrize("program", [tries_within, tries_with_a_name])
def test_arrays_of_a_failed_attempt_are_there_until_the_except_block_ends(program):
    recording, fixed = recorded(program), recorded(tries_afterwards)
    (finding,) = found(recording)

    assert found(fixed) == []
    assert finding.saved_bytes == recording.peak().bytes - fixed.peak().bytes == 256 * MIB
    assert finding.title.startswith("256 MiB of an attempt that failed is still allocated while ")
    assert "Leave the `except` block first" in finding.change
    assert {line.source for line in finding.lines} == {
        "batch = gpu.empty(size)",
        "hidden = gpu.empty(size)",
    }


def test_each_of_several_attempts_keeps_its_arrays():
    recording = recorded(partial(tries_within, sizes=(160, 90, 20)))
    fixed = recorded(partial(tries_afterwards, sizes=(160, 90, 20)))
    (finding,) = found(recording)

    assert "attempts that failed" in finding.title
    assert finding.saved_bytes == recording.peak().bytes - fixed.peak().bytes


def test_any_exception_keeps_the_arrays_of_what_it_ended():
    recording, fixed = recorded(solves_within), recorded(solves_afterwards)
    (finding,) = found(recording)

    assert found(fixed) == []
    assert finding.saved_bytes == recording.peak().bytes - fixed.peak().bytes == 128 * MIB
    assert "An exception ended `solved` in `return solved(gpu, rate)`." in finding.reason


def test_the_variables_of_a_function_that_calls_itself_stay_until_all_calls_return():
    recording, fixed = recorded(widens_itself), recorded(widens_afterwards)
    (finding,) = found(recording)

    assert found(fixed) == []
    assert finding.saved_bytes == recording.peak().bytes - fixed.peak().bytes == 128 * MIB
    assert finding.reason.startswith("`widens_itself` calls itself in its `except` block")
    assert "in a loop" in finding.change


def test_the_results_that_an_attempt_has_when_it_fails_are_not_counted():
    recording, fixed = recorded(resumes), recorded(resumes_afterwards)
    (finding,) = found(recording)

    assert found(fixed) == []
    assert finding.saved_bytes == recording.peak().bytes - fixed.peak().bytes == 112 * MIB


def test_a_function_that_divides_its_work_is_told_to_keep_a_list_of_the_parts():
    (finding,) = found(recorded(divides))

    assert finding.saved_bytes == 128 * MIB
    assert finding.reason.endswith("stay: 1 array that nothing uses any more.")
    assert "a loop over a list of the parts still to do" in finding.change


def test_the_last_error_keeps_the_arrays_of_all_attempts():
    kept = []
    (finding,) = found(recorded(partial(gives_up, kept)))

    assert len(kept) == 1
    assert finding.saved_bytes == 96 * MIB
    assert [line.source for line in finding.lines] == ["hidden = gpu.empty(sizes[0])"]


def test_failed_requests_name_the_arrays_of_failed_attempts_as_the_cause():
    recording = recorded(partial(tries_within, sizes=(160, 90, 20)))
    failed = next(each for each in all_conclusions(recording) if each.kind == "failure")
    once = next(each for each in all_conclusions(recorded(has_its_own)) if each.kind == "failure")

    assert failed.change.endswith("see R73.")
    assert once.change == ""


@pytest.mark.parametrize(
    "program",
    [
        *(has_its_own, goes_on, checks_within, scores_several),
        *(collects_results, compares_itself),
        *(warms_up, keeps_buffers, keeps_buffers_by_method, resumes_by_name),
    ],
)
def test_what_the_function_itself_has_is_not_kept_by_the_exception(program):
    assert found(recorded(program)) == []


def test_what_a_list_keeps_too_is_not_counted():
    (finding,) = found(recorded(collects))

    assert finding.saved_bytes == 128 * MIB
    assert [line.source for line in finding.lines] == ["batch = gpu.empty(size)"]
