"""R57: work that computes the same values in each round of a loop."""

import pytest

from gpuviz.advice.findings import findings
from gpuviz.recording import Recording
from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.repeated_work import (
    ROUNDS,
    SIZE,
    again,
    by_a_function,
    in_each_round,
    once,
    over_lines,
    weights_of,
)


def beside_other_work(cp):
    """Compute the same in a function that a line calls, and something else on that line."""
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        state += state * cp.elementwise("log", weights_of(cp, x))


def for_each_batch(cp):
    state = cp.uploaded(SIZE)
    batches = [cp.uploaded(SIZE) for _ in range(3)]
    for _ in range(5):
        for batch in batches:
            scaled = cp.elementwise("sqrt", batch)
            state += scaled


def with_the_same_scalars(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        state += x * 0.5


def updated_afterwards(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        weights = cp.elementwise("exp", x)
        cp.elementwise("multiply", weights, float(step), out=weights)
        cp.kernel("solve", [weights], [weights])
        state += weights


def updated_in_another_array(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    weights = cp.elementwise("exp", x)
    for step in range(ROUNDS):
        scaled = weights * float(step)
        cp.kernel("solve", [scaled], [scaled])
        state += scaled


def changed_afterwards(cp):
    """The kernel needs a new array in each round."""
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        weights = cp.elementwise("exp", x)
        cp.kernel("solve", [weights, state], [weights])
        state += weights


def copied_and_updated(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        copied = cp.elementwise("copy", x)
        copied += state
        state += copied


def updated_in_one_array(cp):
    """What a round leaves in the array is there before the next one."""
    x, state, weights = cp.uploaded(SIZE), cp.uploaded(SIZE), cp.empty(SIZE)
    for step in range(ROUNDS):
        cp.elementwise("exp", x, out=weights)
        cp.elementwise("multiply", weights, float(step), out=weights)
        state += weights


def changed_in_some_rounds(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        weights = cp.elementwise("exp", x)
        if step % 5 == 4:
            cp.kernel("solve", [weights, state], [weights])
        state += weights


def with_other_scalars(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        state += x * float(step)


def with_unknown_scalars(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        product = cp.empty(SIZE)
        cp.kernel("cupy_multiply__float32_float_float32", [x], [product], scalars=None)
        state += product


def of_what_changes(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        state += cp.elementwise("exp", x)
        x += state


def of_new_data(cp):
    state = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        x = cp.uploaded(SIZE)
        state += cp.elementwise("exp", x)


def of_random_numbers(cp):
    state = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        state += cp.random(SIZE)


def of_each_part(cp):
    """The kernel receives another part of the array in each round."""
    x, state = cp.uploaded(4 * SIZE), cp.uploaded(SIZE)
    for step in range(ROUNDS):
        part = cp.empty(SIZE)
        cp.kernel("gather", [x], [part], scalars=[step * SIZE])
        state += part


def benchmark(cp):
    """Nothing that changes needs the results: the repetition is the purpose."""
    x = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        float(cp.elementwise("exp", x * x).sum())


def zeros(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        total = cp.empty(SIZE)
        cp.gpu.fill(total.memory)
        total += state
        state += x


def after_unseen_work(cp):
    """A kernel with pointers in the device's memory may have written anything."""
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        cp.kernel("by_pointers", [], [], 20e-6)
        state += cp.elementwise("exp", x)


def of_what_is_not_seen(cp):
    """The kernel reads what an unseen one has written into memory that no kernel names."""
    state = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        result = cp.empty(SIZE)
        cp.kernel("splitKreduce", [result], [result])
        state += result


def of_what_nothing_seems_to_write(cp):
    """Something that is not seen has written the array before the kernel reads it."""
    state = cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        result = cp.empty(SIZE)
        state += cp.elementwise("exp", result)


@pytest.mark.parametrize("program", [in_each_round, over_lines, by_a_function])
def test_what_computing_values_once_saves_is_predicted(program):
    (finding,) = again(of_arrays(program))
    saved = of_arrays(program).duration_ns - of_arrays(once).duration_ns

    assert finding.saved_ns == pytest.approx(saved, rel=0.05)
    assert again(of_arrays(once)) == []


def test_what_an_update_changes_afterwards_can_be_kept_too():
    (finding,) = again(of_arrays(updated_afterwards))
    kept = of_arrays(updated_in_another_array)

    saved = of_arrays(updated_afterwards).duration_ns - kept.duration_ns
    assert finding.saved_ns == pytest.approx(saved, rel=0.05)
    assert finding.change == (
        "Compute this once, before the loop, and keep the result (64.0 MiB). `multiply` must then "
        "write another array (`y = x + 1` instead of `x += 1`)."
    )
    assert again(kept) == []


def test_values_of_several_inputs_in_turn_are_found_too():
    (finding,) = again(of_arrays(for_each_batch))

    assert "computes the same values 5 times" in finding.title
    assert "keep the result (192 MiB)" in finding.change


def test_a_function_of_a_known_scalar_is_found_too():
    (finding,) = again(of_arrays(with_the_same_scalars))

    assert finding.title == (
        "A part of `state += x * 0.5` (`multiply`) computes the same values 20 times."
    )
    assert finding.change.startswith("Compute this part once, before the loop, and keep its result")


def test_one_line_before_the_loop_is_said_beside_a_kernel_for_the_whole_round():
    first = findings(of_arrays(over_lines))[:2]

    assert {each.rule for each in first} == {"R08", "R57"}


@pytest.mark.parametrize(
    "program",
    [
        changed_afterwards,
        copied_and_updated,
        updated_in_one_array,
        with_other_scalars,
        with_unknown_scalars,
        of_what_changes,
        of_new_data,
        of_random_numbers,
        of_each_part,
        benchmark,
        zeros,
        after_unseen_work,
        of_what_is_not_seen,
        of_what_nothing_seems_to_write,
    ],
)
def test_what_looks_alike_is_no_finding(program):
    assert again(of_arrays(program)) == []


def test_results_that_the_gpu_has_no_room_for_are_computed_again():
    recording = of_arrays(for_each_batch)
    devices = recording.tables["devices"]
    place = devices.schema.get_field_index("total_memory")
    total = devices["total_memory"].take([0]).cast("int64")
    small = devices.set_column(place, devices.schema.field(place), [[400 << 20]])
    full = Recording({**recording.tables, "devices": small}, recording.manifest)

    assert total[0].as_py() > recording.peak().bytes + 192 * MI
    assert again(full) == []


def several_times_in_each_round(cp):
    x, state = cp.uploaded(SIZE), cp.uploaded(SIZE)
    for _ in range(ROUNDS):
        x += cp.random(SIZE)
        for _ in range(5):
            state += cp.elementwise("exp", x)


def test_of_values_that_change_now_and_then_one_is_kept_at_a_time():
    found = findings(of_arrays(several_times_in_each_round), small=True)
    (finding,) = (each for each in found if each.rule == "R57")

    assert "computes the same values 5 times" in finding.title
    assert finding.change == (
        "Compute this part once for each value of the inputs, outside the loop that repeats the "
        "work, and keep its result (64.0 MiB at a time)."
    )


def test_of_rounds_that_change_their_results_nothing_is_said():
    (finding,) = again(of_arrays(changed_in_some_rounds))

    assert "computes the same values 16 times" in finding.title


def test_lines_that_do_other_work_too_are_not_said_to_compute_the_same():
    (finding,) = again(of_arrays(beside_other_work))

    assert finding.title.startswith("Parts of `")
    assert finding.title.endswith("compute the same values 20 times.")
    assert finding.change.startswith("Compute these parts once, before the loop")
