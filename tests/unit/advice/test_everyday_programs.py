"""Everyday programs with a fault and without it: what is said of each first, and what it saves."""

import pytest

from gpuviz.advice.findings import findings
from gpuviz.advice.replay.trace import Trace
from tests.unit.advice.arrays import MI, of_arrays


def outputs_in_a_list(cp, *, keeps):
    weights = cp.random(4 * MI)
    outputs = []
    for _ in range(12):
        batch = cp.random(4 * MI)
        output = batch * weights
        if keeps:
            outputs.append(output)
        weights -= output * 0.01
        del batch, output


def states_of_one_line(cp, *, keeps):
    state = cp.random(4 * MI)
    history = []
    for _ in range(20):
        state = cp.elementwise("sin", state) * 0.5 + state
        if keeps:
            history.append(state)


def caught_exceptions(cp, *, keeps):
    def attempt():
        batch = cp.random(4 * MI)
        scaled = cp.elementwise("exp", batch)
        scaled += batch
        raise ValueError("no")

    errors = []
    for _ in range(14):
        try:
            attempt()
        except ValueError as error:
            errors.append(error if keeps else str(error))


# It makes the state of a random number generator, in memory of cuRAND.
SEED = "void generate_seed_pseudo<rng_config<curandStateXORWOW, (curandOrdering)101> >(...)"


def failed_restarts(cp, *, keeps, seed=SEED):
    data = cp.random(4 * MI)

    def fit(start):
        cp.kernel(seed, [], [])
        for step in range(12):
            distances = cp.elementwise("exp", data)
            weights = distances * data
            weights.sum()
            if start % 2 and step == 6:
                raise ValueError("no")

    errors = []
    for start in range(24):
        try:
            fit(start)
        except ValueError as error:
            errors.append(error if keeps else str(error))


def samples_joined_each_time(cp, *, keeps):
    if keeps:
        samples = cp.random(MI)
        for _ in range(40):
            part = cp.random(MI)
            samples = cp.joined([samples, part])
            del part
    else:
        samples = cp.empty(41 * MI)
        for _ in range(41):
            part = cp.random(MI)
            cp.elementwise("copy", part, out=samples)
            del part
    samples.sum()


def float64_by_a_small_array(cp, *, keeps):
    image = cp.random(32 * MI)
    scale = cp.random(256, "float64" if keeps else "float32")
    scaled = image * scale
    scaled += 1.0
    scaled.sum()


def passes_over_an_image(cp, *, keeps):
    for _ in range(10):
        image = cp.random(24 * MI)
        if keeps:
            bright = image * 1.2
            raised = bright + 0.1
            cp.elementwise("sqrt", raised).sum()
            del bright, raised
        else:
            cp.kernel("graded", [image], [cp.empty(1)])
        del image


def a_comprehension_of_expressions(cp, *, keeps):
    for _ in range(6):
        density, speed = cp.random(MI), cp.random(MI)
        if keeps:
            whole = cp.joined([(speed * 0.1 + speed * speed) * density for _ in range(9)])
        else:
            parts = [cp.empty(MI) for _ in range(9)]
            for each in parts:
                cp.kernel("equilibrium", [density, speed], [each])
            whole = cp.joined(parts)
            del parts, each
        del density, speed
        whole.sum()


def energy_at_each_step(cp, *, keeps):
    positions, velocities = cp.random(6 * MI), cp.random(6 * MI)
    for _ in range(60):
        cp.kernel("forces", [positions], [velocities], duration=1e-4)
        cp.kernel("integrate", [velocities], [positions])
        energy = velocities.sum()
        if keeps:
            total = float(energy)
    return total if keeps else None


def streams_one_after_the_other(cp, *, keeps):
    streams = [cp.gpu.Stream(non_blocking=True) for _ in range(4)]
    arrays = [cp.random(MI) for _ in streams]
    cp.gpu.synchronize()
    for _ in range(10):
        for stream, array in zip(streams, arrays, strict=True):
            with stream:
                cp.gpu.launch("solve", writes=[array.memory], duration=4e-4, share=0.2, grid=(26,))
            if keeps:
                stream.synchronize()


FAULTS = {
    outputs_in_a_list: "R09",
    states_of_one_line: "R09",
    caught_exceptions: "R09",
    failed_restarts: "R09",
    samples_joined_each_time: "R49",
    float64_by_a_small_array: "R33",
    passes_over_an_image: "R08",
    a_comprehension_of_expressions: "R08",
    energy_at_each_step: "R18",
    streams_one_after_the_other: "R41",
}


@pytest.mark.parametrize(("program", "rule"), FAULTS.items())
def test_the_fault_is_among_the_first_and_saves_what_was_predicted(program, rule):
    with_it = of_arrays(lambda cp: program(cp, keeps=True))
    without = of_arrays(lambda cp: program(cp, keeps=False))
    said = findings(with_it)
    found = [each for each in said if each.rule == rule]
    saved_bytes = with_it.peak().bytes - without.peak().bytes
    saved_ns = Trace(with_it).working_ns - Trace(without).working_ns

    assert rule in {each.rule for each in said[:3]}
    if found[0].saved_bytes and not found[0].saved_ns:
        assert sum(each.saved_bytes for each in found) == pytest.approx(saved_bytes, rel=0.06)
    if found[0].saved_ns:
        assert sum(each.saved_ns for each in found) == pytest.approx(saved_ns, rel=0.2)
    assert rule not in {each.rule for each in findings(without)}


def keys_that_occur_again(cp):
    cache, total = {}, cp.random(2 * MI)
    for key in (0, 1, 0, 2, 1, 0, 3, 2, 3, 0, 2, 3, 1, 0, 1, 3, 2, 1, 0, 2):
        if key not in cache:
            cache[key] = cp.random(2 * MI)
        total += cache[key]


def entries_of_a_cache(cp):
    cache, signal, total = {}, cp.random(4 * MI), cp.random(4 * MI)
    for scale in (1, 2, 3, 1, 2, 4, 3, 5, 1, 6, 2, 5, 3, 6, 4, 1, 2, 7, 7, 3, 5, 6, 4, 1):
        if scale not in cache:
            cache[scale] = signal * float(scale)
        total += cache[scale]


def two_buffers_in_turn(cp):
    front, back = cp.random(16 * MI), cp.random(16 * MI)
    for _ in range(30):
        cp.kernel("stencil", [front], [back])
        front, back = back, front
    front.sum()


def a_value_that_ends_the_loop(cp):
    vector = cp.random(4 * MI)
    for _ in range(30):
        cp.kernel("step", [vector], [vector])
        change = float(vector.sum())
        if change < 0:
            break


def states_that_are_joined_at_last(cp):
    state, history = cp.random(MI), []
    for _ in range(20):
        state = cp.elementwise("sin", state) * 0.5 + state
        history.append(state)
    whole = cp.empty(20 * MI)
    for each in history:
        cp.elementwise("copy", each, out=whole)
    whole.sum()


@pytest.mark.parametrize(
    "program",
    [keys_that_occur_again, entries_of_a_cache, two_buffers_in_turn, a_value_that_ends_the_loop],
)
def test_nothing_is_said_of_programs_without_a_fault(program):
    assert findings(of_arrays(program)) == ()


def test_a_list_that_is_used_at_last_is_no_growth_and_not_dead():
    rules = {each.rule for each in findings(of_arrays(states_that_are_joined_at_last))}

    assert not rules & {"R09", "R45"}


def test_what_the_recording_ends_with_may_be_used_later():
    kept = []

    def program(cp):
        for _ in range(10):
            batch = cp.random(4 * MI)
            kept.append(cp.elementwise("exp", batch))
            del batch

    (finding,) = findings(of_arrays(program))

    assert (finding.rule, finding.certainty) == ("R09", "possible")
    assert finding.reason.endswith("if the program uses them later, keep them.")


@pytest.mark.parametrize("copies", [True, False])
def test_states_to_go_back_to_may_be_used_later(copies):
    def program(cp):
        state, undo = cp.random(4 * MI), []
        for move in range(30):
            undo.append(cp.elementwise("copy", state))
            cp.kernel("move", [state], [state])
            if move % 3 == 2 and copies:
                cp.elementwise("copy", undo.pop(), out=state)
                cp.elementwise("copy", undo.pop(), out=state)
            elif move % 3 == 2:
                state = undo.pop()
        state.sum()

    (finding,) = (each for each in findings(of_arrays(program)) if each.rule == "R09")

    assert finding.certainty == "possible"
    assert "Others of the line are used later" in finding.reason
    assert "deque(maxlen=...)" in finding.change


def test_a_wider_type_is_said_beside_a_kernel_for_the_whole_expression():
    def program(cp):
        image, other, scale = cp.random(32 * MI), cp.random(32 * MI), cp.random(256, "float64")
        for _ in range(4):
            result = image * scale + other
            result.sum()

    first = findings(of_arrays(program))[:3]

    assert [each.rule for each in first] == ["R08", "R33"]
    assert first[1].saved_bytes == 384 * MI


def test_unknown_kernels_without_arguments_may_use_what_is_kept():
    unknown = of_arrays(lambda cp: failed_restarts(cp, keeps=True, seed="prepare"))

    assert "R09" not in {each.rule for each in findings(unknown)}
