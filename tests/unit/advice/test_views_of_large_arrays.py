"""R67: views of parts that keep whole arrays."""

import pytest

from tests.unit.advice.programs import MIB, View, found, recorded, saved, threads

ARRAYS, SIZE, PART = 12, 32 * MIB, MIB
COPY, JOIN = "cupy_copy__float32_float32", "cupy_concatenate"
MADE = "array = gpu.empty(SIZE)"
JOIN_OF_TORCH = "void at::native::(anonymous namespace)::CatArrayBatchedCopy<...>(...)"
INDEX_OF_TORCH = "void at::native::index_elementwise_kernel<128, 4, gpu_index_kernel<...>>(...)"
GATHER_OF_TORCH = "void at::native::_scatter_gather_elementwise_kernel<128, 8, ...>(...)"


def made(gpu):
    array = gpu.empty(SIZE)
    gpu.launch("make", duration=1e-4, writes=[array])
    return array


def view(_, array):
    return View(array)


def copied(gpu, array):
    part = gpu.empty(PART)
    elementwise(gpu, View(array), part)
    return part


def elementwise(gpu, part, result, *, name=COPY):
    gpu.launch(name, duration=1e-5, reads=[part], writes=[result], **threads(part.nbytes // 4))


def peaks(gpu):
    gpu.launch("large", duration=1e-4, writes=[gpu.empty(64 * MIB)])


def each_on_its_own(gpu, parts):
    for part in parts:
        elementwise(gpu, part, gpu.empty(part.nbytes))


def to_the_host(gpu, parts):
    for part in parts:
        gpu.copy_to_host(part)


def joined(gpu, parts):
    """As CuPy does, whose kernel finds the addresses in a table."""
    table, result = gpu.empty(8 * len(parts)), gpu.empty(sum(each.nbytes for each in parts))
    gpu.copy_to_device(table)
    gpu.launch(JOIN, duration=1e-4, reads=[table], writes=[result])
    gpu.launch("read", duration=1e-4, reads=[result])


def joined_by_torch(gpu, parts):
    result = gpu.empty(sum(each.nbytes for each in parts))
    gpu.launch(JOIN_OF_TORCH, duration=1e-4, reads=parts, writes=[result])
    gpu.launch("read", duration=1e-4, reads=[result])


def beginnings(gpu, parts):
    """Into the beginning of another array, which may be of the whole."""
    for part in parts:
        result = View(gpu.empty(SIZE), 0)
        elementwise(gpu, View(part.array, 0), result)


def joined_in_place_by_torch(gpu, parts):
    """Which of the arrays is the output, gpuviz does not know."""
    result = gpu.empty(MIB)
    gpu.launch("make", duration=1e-4, writes=[result])
    gpu.launch(JOIN_OF_TORCH, duration=1e-4, reads=parts, writes=[result])


def unknown(gpu, parts):
    each_on_its_own(gpu, parts)
    gpu.launch("sum", duration=1e-4, reads=parts, writes=[gpu.empty(512)])


def opaque(gpu, parts):
    each_on_its_own(gpu, parts)
    gpu.launch("batched", duration=1e-4)


def larger_parts(gpu, parts):
    each_on_its_own(gpu, [View(each.array, nbytes=SIZE // 2) for each in parts])


def in_turn(gpu, parts):
    for row in range(4):
        each_on_its_own(gpu, [View(each.array, row * PART) for each in parts])


def first_batches(gpu, parts):
    each_on_its_own(gpu, parts[: ARRAYS // 3])


def changed_parts(gpu, parts):
    for part in parts:
        elementwise(gpu, part, part)


def wholes_at_last(gpu, parts):
    each_on_its_own(gpu, parts)
    joined(gpu, [each.array for each in parts])


def some_others(gpu, _):
    """Not as many arrays as there are."""
    others = [gpu.empty(PART) for _ in range(ARRAYS + 3)]
    joined(gpu, others)


def as_many_others(gpu, parts):
    others = [gpu.empty(PART) for _ in parts]
    joined(gpu, others)


def twice(gpu, parts):
    joined(gpu, parts)
    joined(gpu, parts)


def at_indices(kernel, elements):
    """Return a use that draws elements of the arrays anew in each round."""

    def use(gpu, parts):
        for _ in range(4):
            for part in parts:
                indices, result = gpu.empty(MIB // 16), gpu.empty(PART)
                gpu.launch("draw", duration=1e-5, writes=[indices])
                gpu.launch(
                    kernel,
                    duration=1e-5,
                    reads=[part.array, indices],
                    writes=[result],
                    **threads(PART // 4 // elements),
                )

    return use


def collects(cut, use, *, arrays=ARRAYS):
    """Return a program that cuts a part out of each array, and uses the parts later."""

    def program(gpu):
        parts = []
        for _ in range(arrays):
            array = made(gpu)
            parts.append(cut(gpu, array))
        del array
        peaks(gpu)
        use(gpu, parts)

    return program


def deletes(gpu, cut):
    """Cut a part out of each array, which the loop deletes."""
    parts = []
    for _ in range(ARRAYS):
        array = made(gpu)
        parts.append(cut(gpu, array))
        del array
    each_on_its_own(gpu, parts)


joins_views = collects(view, joined)


def at_once(gpu):
    for _ in range(ARRAYS):
        each_on_its_own(gpu, [view(gpu, made(gpu))])
    peaks(gpu)


def ring(gpu):
    """A buffer that is only used in parts, again and again."""
    buffer = gpu.empty(ARRAYS * SIZE)
    for number in range(3 * ARRAYS):
        part = View(buffer, number % ARRAYS * SIZE)
        gpu.launch("make", duration=1e-4, writes=[part])
        each_on_its_own(gpu, [part])
    peaks(gpu)
    each_on_its_own(gpu, [View(buffer)])


USES = [each_on_its_own, to_the_host, joined, joined_by_torch]


@pytest.mark.parametrize("use", USES)
def test_copies_of_the_parts_save_what_was_predicted(use):
    finding = found(collects(view, use), "R67")[0]

    measured = saved(collects(view, use), collects(copied, use))
    assert finding.saved_bytes == measured
    assert measured > (ARRAYS - 3) * (SIZE - PART)
    assert finding.title == (
        "384 MiB from `array = gpu.empty(SIZE)` is kept at the peak for parts of at most 12.0 MiB."
    )


def test_a_variable_that_the_loop_deletes_keeps_no_further_array():
    def views(gpu):
        deletes(gpu, view)

    finding = found(views, "R67")[0]

    measured = saved(views, lambda gpu: deletes(gpu, copied))
    assert finding.saved_bytes == measured > (ARRAYS - 2) * (SIZE - PART)


@pytest.mark.parametrize("use", USES)
def test_the_program_that_keeps_copies_has_nothing_to_find(use):
    assert found(collects(copied, use), "R67") == []


def test_the_lines_of_the_last_uses_and_the_copy_are_named():
    finding = found(collects(view, each_on_its_own), "R67")[0]

    assert finding.reason == (
        'Nothing uses these 12 arrays as a whole after `gpu.launch("make", duration=1e-4, '
        "writes=[array])`. The last use of their parts is `use(gpu, parts)`. A view, such as a "
        "slice, keeps its whole array allocated."
    )
    assert "`x[...].copy()`" in finding.change


def test_arrays_that_are_kept_for_parts_come_before_those_that_nothing_uses_any_more():
    findings = recorded(collects(view, joined)).findings(small=True)

    rules = [each.rule for each in findings if each.rule in {"R45", "R67"}]
    assert rules[0] == "R67"


@pytest.mark.parametrize(
    "use",
    [
        unknown,
        opaque,
        beginnings,
        joined_in_place_by_torch,
        larger_parts,
        in_turn,
        first_batches,
        changed_parts,
        wholes_at_last,
        some_others,
        as_many_others,
        twice,
        at_indices(INDEX_OF_TORCH, 4),
        at_indices(GATHER_OF_TORCH, 8),
    ],
)
def test_other_uses_may_need_the_whole_arrays(use):
    assert found(collects(view, use), "R67") == []


@pytest.mark.parametrize("program", [at_once, ring])
def test_short_lives_and_buffers_are_left_alone(program):
    assert found(program, "R67") == []


@pytest.mark.parametrize(("arrays", "count"), [(1, 1), (2, 1), (3, 1)])
def test_few_arrays_must_be_a_large_part_of_the_peak(arrays, count):
    assert len(found(collects(view, each_on_its_own, arrays=arrays), "R67")) == count


def test_a_small_array_is_left_alone():
    def program(gpu):
        others = [made(gpu) for _ in range(8)]
        collects(view, each_on_its_own, arrays=1)(gpu)
        gpu.launch("read", duration=1e-4, reads=others)

    assert found(program, "R67") == []


def test_what_the_host_reads_meanwhile_may_decide_which_part_is_needed():
    def decides(gpu, parts):
        gpu.copy_to_host(gpu.empty(512))
        each_on_its_own(gpu, parts)

    assert found(collects(view, decides), "R67")[0].certainty == "possible"
    assert found(collects(view, each_on_its_own), "R67")[0].certainty == "likely"


def loops(cut, *, arrays):
    """Return a program whose loop has the peak: its variable keeps an array until the next one."""

    def program(gpu):
        parts = []
        for _ in range(arrays):
            array = made(gpu)
            parts.append(cut(gpu, array))
        joined(gpu, parts)

    return program


@pytest.mark.parametrize("arrays", [2, 3, 4, 12])
def test_the_variable_of_a_loop_keeps_an_array_while_the_next_one_is_made(arrays):
    finding = found(loops(view, arrays=arrays), "R67")[0]

    measured = saved(loops(view, arrays=arrays), loops(copied, arrays=arrays))
    assert finding.saved_bytes == measured
    assert (arrays - 3) * SIZE < measured < (arrays - 1) * SIZE


def test_the_advice_names_the_variable_that_keeps_the_last_array():
    change = found(collects(view, joined), "R67")[0].change

    assert change.endswith(
        "Then the whole arrays can be freed; delete (`del`) a variable that keeps the last one."
    )


def rounds(*programs):
    """Return a program that runs others one after the other."""

    def program(gpu):
        for each in programs:
            each(gpu)

    return program


@pytest.mark.parametrize("counts", [(12, 12, 12), (12, 6), (6, 12), (4, 12, 8)])
@pytest.mark.parametrize("use", USES)
def test_arrays_of_each_round_are_one_finding_that_saves_what_was_predicted(counts, use):
    program, fixed = (
        rounds(*(collects(cut, use, arrays=count) for count in counts)) for cut in (view, copied)
    )

    (finding,) = (each for each in found(program, "R67") if each.lines[0].source == MADE)

    assert finding.saved_bytes == saved(program, fixed) > (ARRAYS - 3) * (SIZE - PART)
    assert finding.title == (
        f"384 MiB from `{MADE}` is kept at the peak for parts of at most 12.0 MiB."
    )
    assert [each for each in found(fixed, "R67") if each.lines[0].source == MADE] == []


def test_the_variable_of_a_loop_keeps_an_array_in_each_round():
    program, fixed = (rounds(*[loops(cut, arrays=5)] * 3) for cut in (view, copied))

    assert found(program, "R67")[0].saved_bytes == saved(program, fixed) > 2 * SIZE


def test_the_variable_of_a_loop_keeps_an_array_until_the_next_round():
    def of_rounds(cut):
        def program(gpu):
            for _ in range(3):
                parts = []
                for _ in range(5):
                    array = made(gpu)
                    parts.append(cut(gpu, array))
                peaks(gpu)
                joined(gpu, parts)

        return program

    finding = found(of_rounds(view), "R67")[0]

    assert finding.saved_bytes == saved(of_rounds(view), of_rounds(copied)) > 2 * SIZE


def test_without_a_variable_copies_save_more_than_is_promised():
    def comprehends(cut):
        def program(gpu):
            for _ in range(3):
                parts = [cut(gpu, made(gpu)) for _ in range(5)]
                joined(gpu, parts)
                del parts

        return program

    finding = found(comprehends(view), "R67")[0]

    measured = saved(comprehends(view), comprehends(copied))
    assert measured - SIZE < finding.saved_bytes < measured


@pytest.mark.parametrize("arrays", [3, 12])
@pytest.mark.parametrize("needs", [(1,), (0, 2)])
def test_rounds_that_use_whole_arrays_again_may_need_all(needs, arrays):
    every = [collects(view, joined), collects(view, joined, arrays=arrays)] * 2
    for number in needs:
        every[number] = collects(view, wholes_at_last, arrays=arrays)

    assert found(rounds(*every), "R67") == []
