"""R68: most of what a matrix product or an elementwise function computes is never read."""

import pytest

from gpuviz.advice.findings import findings
from tests.unit.advice.programs import (
    MIB,
    View,
    found,
    recorded,
    saved,
    threads,
    with_unknown_modes,
)

ROUNDS, SIZE, PART = 3, 64 * MIB, MIB
PRODUCT, COPY, SQUARE = "sm80_gemm", "cupy_copy__float32_float32", "cupy_square__float32_float32"
COPY_OF_TORCH = "void at::native::elementwise_kernel<128, 4, at::native::direct_copy_kernel<...>>()"
SQUARE_OF_TORCH = "void at::native::vectorized_elementwise_kernel<4, at::native::pow_kernel<...>>()"
RANDOM_OF_TORCH = "void at::native::vectorized_elementwise_kernel<4, at::native::fill_kernel>()"


def computed(gpu, operand, *, name=PRODUCT, size=SIZE):
    """Return an array that takes 10 µs a MiB to compute."""
    reads = [] if operand is None else [operand]
    result = gpu.empty(size)
    shape = {} if name == PRODUCT else threads(size // 4)
    gpu.launch(name, duration=size / MIB * 1e-5, reads=reads, writes=[result], **shape)
    return result


def copied(gpu, part, *, name=COPY):
    """Return a copy of a part; PyTorch's kernel copies four elements with each thread."""
    copy, of_thread = gpu.empty(part.nbytes), 4 if name == COPY_OF_TORCH else 1
    count = part.nbytes // 4 // of_thread
    gpu.launch(name, duration=1e-5, reads=[part], writes=[copy], **threads(count))
    return copy


def to_the_host(gpu, part):
    gpu.copy_to_host(part)


def copied_by_torch(gpu, part):
    copied(gpu, part, name=COPY_OF_TORCH)


def computes(use, *, name=PRODUCT, view=True):
    """Return a program of which `use` gets a part of a result, or computes only that."""

    def program(gpu):
        operand = gpu.empty(8 * MIB)
        for _ in range(ROUNDS):
            gpu.launch("read", duration=1e-5, reads=[operand])
            result = computed(gpu, operand, name=name, size=SIZE if view else PART)
            use(gpu, View(result) if view else result)
            del result

    return program


def both(*uses):
    def use(gpu, part):
        for each in uses:
            each(gpu, part)

    return use


def at(offset, nbytes, use=copied):
    return lambda gpu, part: use(gpu, View(part.array, offset, nbytes))


def as_a_whole(gpu, part):
    gpu.launch("sum", duration=1e-5, reads=[part.array], writes=[gpu.empty(512)])


def of_unknown_bytes(gpu, part):
    gpu.launch("sum", duration=1e-5, reads=[part], writes=[gpu.empty(512)])


def beginnings(gpu, part):
    """Of this and another large array, whose ends the threads may reach as well."""
    copy, result = gpu.empty(SIZE), View(part.array, 0)
    gpu.launch(COPY, duration=1e-5, reads=[result], writes=[copy], **threads(PART // 4))


def opaque(gpu, part):
    copied(gpu, part)
    gpu.launch("batched", duration=1e-5)


def in_turn(gpu, part):
    for row in range(4):
        copied(gpu, View(part.array, row * MIB))


def changed(gpu, part):
    gpu.launch(SQUARE, duration=1e-5, reads=[part], writes=[part], **threads(MIB // 4))


def glanced_at(gpu, part):
    gpu.copy_to_host(View(part.array, 0, 4))


def converts(*, view=True):
    """Return a program that converts a product before it uses a part of it."""

    def program(gpu):
        operand = gpu.empty(8 * MIB)
        for _ in range(ROUNDS):
            gpu.launch("read", duration=1e-5, reads=[operand])
            result = computed(gpu, operand, size=SIZE if view else PART)
            converted = widened(gpu, result)
            copied(gpu, View(converted, nbytes=2 * PART) if view else converted)
            del result, converted

    return program


def widened(gpu, operand):
    result = gpu.empty(2 * operand.nbytes)
    shape, name = threads(operand.nbytes // 2), "cupy_copy__float16_float32"
    gpu.launch(name, duration=1e-4, reads=[operand], writes=[result], **shape)
    return result


def fills(gpu):
    """A buffer that is used as far as it is needed."""
    for _ in range(ROUNDS):
        buffer = gpu.empty(SIZE)
        gpu.fill(buffer)
        copied(gpu, View(buffer))


def draws(gpu):
    for _ in range(ROUNDS):
        copied(gpu, View(computed(gpu, None, name=RANDOM_OF_TORCH)))


def transforms(gpu):
    """Each element of a transform depends on all of its input."""
    computes(copied, name="regular_fft")(gpu)


def keeps(gpu):
    """The results are still there when the recording ends, which may be too soon."""
    gpu.kept = [computed(gpu, gpu.empty(MIB)) for _ in range(ROUNDS)]
    for each in gpu.kept:
        copied(gpu, View(each))


def mostly_reads_all(gpu):
    operand = gpu.empty(8 * MIB)
    gpu.launch("read", duration=1e-5, reads=[operand])
    for use in (copied, as_a_whole, as_a_whole):
        result = computed(gpu, operand)
        use(gpu, View(result))
        del result


USES = [copied, to_the_host, copied_by_torch]


@pytest.mark.parametrize("name", [PRODUCT, SQUARE])
@pytest.mark.parametrize("use", USES)
def test_computing_only_what_is_read_saves_about_what_was_predicted(use, name):
    before, after = computes(use, name=name), computes(use, name=name, view=False)
    (finding,) = found(before, "R68")

    saved_ns = recorded(before).duration_ns - recorded(after).duration_ns
    # What PyTorch's kernel reads is known by its elements, each of 16 bytes at most.
    accuracy = 0.06 if use is copied_by_torch else 0.03
    assert finding.saved_bytes == pytest.approx(saved(before, after), rel=accuracy)
    assert finding.saved_ns == pytest.approx(saved_ns, rel=accuracy)
    assert found(after, "R68") == []


def test_what_is_computed_for_a_result_of_which_most_is_unread_is_not_needed_either():
    first, second = found(converts(), "R68")

    measured = saved(converts(), converts(view=False))
    assert first.saved_bytes + second.further_bytes == measured == 3 * (SIZE - PART)
    assert found(converts(view=False), "R68") == []


def test_both_lines_are_named():
    (finding,) = found(computes(copied), "R68")

    assert finding.title == (
        "`result = gpu.empty(size)` computes 192 MiB, of which at most 3.00 MiB is read, 1.6 %."
    )
    assert "but `use(gpu, View(result) if view else result)`, which needs a part" in finding.reason
    assert [line.amount for line in finding.lines] == ["192 MiB in 3 arrays"]


def test_a_result_of_which_two_lines_read_parts_is_found():
    (finding,) = found(computes(both(copied, at(32 * MIB, MIB))), "R68")

    assert "at most 6.00 MiB is read" in finding.title


def test_kernels_of_torch_do_not_say_what_they_write():
    """A new array is the output; a large one is written by several kernels of one call."""
    recording = recorded(computes(copied_by_torch, name=SQUARE_OF_TORCH))
    unknown = with_unknown_modes(recording, COPY_OF_TORCH)
    unknown = with_unknown_modes(unknown, SQUARE_OF_TORCH)

    assert [each.rule for each in findings(unknown)][:1] == ["R68"]


@pytest.mark.parametrize(
    "use",
    [
        as_a_whole,
        both(copied, as_a_whole),
        of_unknown_bytes,
        beginnings,
        opaque,
        in_turn,
        both(copied, changed),
        glanced_at,
        at(0, 32 * MIB),
        both(copied, at(0, 32 * MIB)),
    ],
)
def test_what_may_need_more_is_left_alone(use):
    assert found(computes(use), "R68") == []


@pytest.mark.parametrize("program", [fills, draws, transforms, keeps, mostly_reads_all])
def test_what_must_be_computed_as_a_whole_is_left_alone(program):
    assert found(program, "R68") == []


def test_what_the_host_reads_meanwhile_may_decide_which_part_is_needed():
    decides = both(lambda gpu, _: gpu.copy_to_host(gpu.empty(512)), copied)

    assert found(computes(decides), "R68")[0].certainty == "possible"
    assert found(computes(copied), "R68")[0].certainty == "likely"
