"""R45: lists of arrays that a line maps to as many others."""

import pytest

from tests.unit.advice.arrays import MI, of_arrays
from tests.unit.advice.programs import MIB, found, saved


def smoothed(gpu, array):
    result = gpu.empty(array.nbytes)
    gpu.launch("smooth", duration=1e-4, reads=[array], writes=[result])
    return result


def six(gpu):
    frames = [gpu.empty(16 * MIB) for _ in range(6)]
    gpu.launch("load", duration=1e-4, writes=frames)
    return frames


def maps_to_a_second_list(gpu):
    frames = six(gpu)
    results = [smoothed(gpu, frame) for frame in frames]
    gpu.launch("show", duration=1e-4, reads=results)


def replaces_each(gpu):
    frames = six(gpu)
    for number in range(6):
        frames[number] = smoothed(gpu, frames[number])
    gpu.launch("show", duration=1e-4, reads=frames)


def test_a_list_that_is_mapped_to_another_one_is_replaced_one_by_one():
    finding = found(maps_to_a_second_list, "R45")[0]

    assert finding.saved_bytes == saved(maps_to_a_second_list, replaces_each) == 80 * MIB
    assert finding.title == (
        "80.0 MiB from `frames = [gpu.empty(16 * MIB) for _ in range(6)]` is still allocated at "
        "the peak, while `results = [smoothed(gpu, frame) for frame in frames]` makes a new array "
        "of each."
    )
    assert finding.change.startswith("Replace each array as soon as the new one is made")
    assert found(replaces_each, "R45") == []


def maps_and_compares(gpu):
    frames = six(gpu)
    results = [smoothed(gpu, frame) for frame in frames]
    gpu.launch("compare", duration=1e-4, reads=[*frames, *results])


def reduces_each(gpu):
    frames = six(gpu)
    for frame in frames: smoothed(gpu, frame)  # fmt: skip # noqa: E701
    gpu.launch("finish", duration=1e-4)


def joins(gpu):
    frames = six(gpu)
    whole = gpu.empty(96 * MIB)
    for frame in frames: gpu.launch("copy", duration=1e-4, reads=[frame], writes=[whole])  # fmt: skip # noqa: E701, E501


def all_pairs_on_one_line(gpu):
    frames, pairs = six(gpu), []
    for _ in frames:
        for frame in frames: pairs.append(gpu.empty(16 * MIB)); gpu.launch("pair", duration=1e-4, reads=[frame], writes=pairs[-1:])  # fmt: skip # noqa: E501, E701, E702
    gpu.launch("show", duration=1e-4, reads=pairs)


@pytest.mark.parametrize("program", [maps_and_compares, reduces_each, joins, all_pairs_on_one_line])
def test_a_list_that_is_needed_or_not_mapped_is_no_finding(program):
    assert found(program, "R45") == []


def mapped_in_rounds(gpu):
    frames = six(gpu)
    for _ in range(4):
        frames = [smoothed(gpu, frame) for frame in frames]
    gpu.launch("show", duration=1e-4, reads=frames)


def replaced_in_rounds(gpu):
    frames = six(gpu)
    for _ in range(4):
        for number in range(6):
            frames[number] = smoothed(gpu, frames[number])
    gpu.launch("show", duration=1e-4, reads=frames)


def mapped_by_a_variable(gpu):
    frames = six(gpu)
    for _ in range(4):
        results = [smoothed(gpu, frame) for frame in frames]
        gpu.launch("show", duration=1e-4, reads=results)
        frames = results


def replaced_and_shown(gpu):
    frames = six(gpu)
    for _ in range(4):
        for number in range(6):
            frames[number] = smoothed(gpu, frames[number])
        gpu.launch("show", duration=1e-4, reads=frames)


def step(gpu, name, *arrays):
    result = gpu.empty(16 * MIB)
    gpu.launch(name, duration=1e-4, reads=arrays, writes=[result])
    return result


def maps_two_lists(gpu):
    params = six(gpu)
    for _ in range(4):
        grads = [step(gpu, "grad", param) for param in params]
        params = [step(gpu, "sgd", *pair) for pair in zip(params, grads, strict=True)]
    gpu.launch("show", duration=1e-4, reads=params)


def replaces_of_two_lists(gpu):
    params = six(gpu)
    for _ in range(4):
        grads = [step(gpu, "grad", param) for param in params]
        for number in range(6):
            params[number] = step(gpu, "sgd", params[number], grads[number])
        del grads
    gpu.launch("show", duration=1e-4, reads=params)


@pytest.mark.parametrize(
    ("program", "fixed", "by"),
    [
        (mapped_in_rounds, replaced_in_rounds, "frames = [smoothed(gpu, frame)"),
        (mapped_by_a_variable, replaced_and_shown, "results = [smoothed(gpu, frame)"),
        (maps_two_lists, replaces_of_two_lists, "params = [step(gpu, "),
    ],
)
def test_a_list_that_each_round_maps_is_replaced_one_by_one(program, fixed, by):
    finding = found(program, "R45")[0]

    assert finding.saved_bytes == saved(program, fixed) == 80 * MIB
    assert f"while `{by}" in finding.title
    assert ("another list" in finding.change) == (program is maps_two_lists)
    assert [each for each in found(fixed, "R45") if "makes a new array" in each.title] == []


def places(gpu, array):
    order = gpu.empty(32 * MIB)
    gpu.launch("sort", duration=1e-4, reads=[array], writes=[order])
    return order


def ranks_what_it_draws(gpu):
    state, x, y, z = (gpu.empty(16 * MIB) for _ in range(4))
    gpu.launch("draw", duration=1e-4, reads=[state], writes=[x, y, z])
    ranked = [step(gpu, "rank", places(gpu, each)) for each in (x, y, z)]
    gpu.launch("show", duration=1e-4, reads=ranked)


def test_an_array_of_the_same_line_that_another_one_uses_last_is_not_mapped():
    first, *_ = found(ranks_what_it_draws, "R45")

    assert first.title.startswith("64.0 MiB from `state, x, y, z = ")
    assert first.title.endswith("is still allocated at the peak, where nothing uses it any more.")


def sharpened_twice(gpu, array):
    edges = step(gpu, "edges", array)
    return step(gpu, "sharpen", edges)


@pytest.mark.parametrize("rounds", [1, 4])
def test_a_replaced_array_is_there_until_the_new_one_is_returned(rounds):
    def program(gpu):
        frames = six(gpu)
        for _ in range(rounds):
            frames = [sharpened_twice(gpu, frame) for frame in frames]
        gpu.launch("show", duration=1e-4, reads=frames)

    def fixed(gpu):
        frames = six(gpu)
        for _ in range(rounds):
            for number in range(6):
                frames[number] = sharpened_twice(gpu, frames[number])
        gpu.launch("show", duration=1e-4, reads=frames)

    finding = found(program, "R45")[0]

    assert "makes a new array of each" in finding.title
    assert finding.saved_bytes == saved(program, fixed) == 80 * MIB


def maps_arrays(cp):
    fields = [cp.random(4 * MI) for _ in range(6)]
    for _ in range(4):
        fields = [cp.elementwise("exp", field) for field in fields]
    float(fields[0])


def replaces_arrays(cp):
    fields = [cp.random(4 * MI) for _ in range(6)]
    for _ in range(4):
        for number in range(6):
            fields[number] = cp.elementwise("exp", fields[number])
    float(fields[0])


def test_a_list_that_each_round_maps_by_a_function_of_a_library_is_found():
    recording, fixed = of_arrays(maps_arrays), of_arrays(replaces_arrays)

    mapped = [each for each in recording.findings(small=True) if "makes a new" in each.title]
    assert [each.rule for each in mapped] == ["R45"]
    assert mapped[0].saved_bytes == recording.peak().bytes - fixed.peak().bytes == 80 * MIB


def maps_and_compares_in_rounds(*rounds):
    def program(gpu):
        images = six(gpu)
        for number in range(4):
            results = [smoothed(gpu, image) for image in images]
            if number in rounds:
                gpu.launch("compare", duration=1e-4, reads=[*images, *results])
            images = results
        gpu.launch("show", duration=1e-4, reads=images)

    return program


def keeps_every_list(gpu):
    history = [six(gpu)]
    for _ in range(4):
        history.append([smoothed(gpu, image) for image in history[-1]])
    gpu.launch("show", duration=1e-4, reads=history[-1])
    gpu.launch("show", duration=1e-4, reads=history[1])


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(maps_and_compares_in_rounds(0, 1, 2, 3), id="all are compared"),
        pytest.param(maps_and_compares_in_rounds(1), id="those of one round are compared"),
        pytest.param(maps_and_compares_in_rounds(3), id="those of the last round are compared"),
        pytest.param(maps_and_compares_in_rounds(0), id="those of the first round are compared"),
        pytest.param(keeps_every_list, id="all lists are kept"),
    ],
)
def test_a_list_that_some_round_needs_is_not_replaced(program):
    assert [each for each in found(program, "R45") if "makes a new array" in each.title] == []
