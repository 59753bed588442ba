"""R89: kernels that use one of several interleaved fields."""

from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from gpuviz.advice.findings import findings
from gpuviz.advice.rules.r89_interleaved_fields import _ordinal
from gpuviz.data.columns import plain
from gpuviz.recording import Recording
from tests.unit.advice.arrays import MI, of_arrays

POINTS, FIELDS, ROUNDS = 4 * MI, 6, 40
ELEMENT, STRIDE = 4, 24
# Of the simulated GPU's bandwidth, in bytes per second, what is reached, and the time of an H200
# for each element.
RATE, THREAD_S = 0.9 * 3.35232e12, 4.8e-12
READS, WRITES, ALL, PRODUCT = (
    "cupy_exp__float32_float32",
    "cupy_copy__float32_float32",
    "cupy_sqrt__float32_float32",
    "sm80_xmma_gemm_f32",
)


def use(  # noqa: PLR0913 - as a launch has
    cp, name, *, reads=(), writes=(), moved=0, seconds=0.0, points=POINTS
):
    """Launch a kernel with a thread for each point, which takes the time to move some bytes."""
    cp.launches()
    cp.gpu.launch(
        name,
        reads=[each.memory for each in reads],
        writes=[each.memory for each in writes],
        grid=(points // 128,),
        block=(128,),
        duration=seconds or max(2e-6 + moved / RATE, points * THREAD_S),
    )


def diffuses(  # noqa: PLR0913 - each is one difference
    cp, *, apart=True, given=False, rounds=ROUNDS, points=POINTS, others=(), each=0.0
):
    """Compute with one field after the other, which are interleaved or not.

    Args:
        cp: The arrays' library.
        apart: Whether they are interleaved.
        given: Whether the host has made them.
        rounds: How often.
        points: The points of each field.
        others: Kernels that use all fields in each round.
        each: How long each kernel takes, in seconds; by its bytes if 0.
    """
    data, out = cp.empty(FIELDS * points), cp.empty(points)
    if given:
        cp.gpu.copy_to_device(data.memory)
        if not apart:
            size = FIELDS * points
            use(cp, ALL, reads=[data], writes=[data], moved=16 * size, points=size)
    else:
        cp.kernel("cupy_fill", [], [data])
    read, written = (STRIDE, 2 * STRIDE) if apart else (ELEMENT, ELEMENT)
    for _ in range(rounds):
        moved = points * (read + ELEMENT)
        use(cp, READS, reads=[data], writes=[out], moved=moved, seconds=each, points=points)
        moved = points * (written + ELEMENT)
        use(cp, WRITES, reads=[out], writes=[data], moved=moved, seconds=each, points=points)
        for name in others:
            size = FIELDS * points
            use(cp, name, reads=[data], writes=[data], moved=2 * STRIDE * points, points=size)
    cp.elementwise("exp", out)


def reads_frames(cp):
    """Read each color of images once, which come from the host one after the other."""
    for _ in range(ROUNDS):
        image = cp.empty(FIELDS * POINTS)
        cp.gpu.copy_to_device(image.memory)
        for _ in range(3):
            gray = cp.empty(POINTS)
            use(cp, READS, reads=[image], writes=[gray], moved=POINTS * (STRIDE + ELEMENT))
        del image, gray


def recorded(program, *, element=ELEMENT, stride=STRIDE, wider=False):
    """Return the recording of a program, with the distances of elements that kernels use."""
    recording = of_arrays(program)
    table, events = recording.tables["launch_blocks"], recording.tables["memory_events"]
    size = dict(zip(plain(events["address"]), plain(events["requested_size"]), strict=True))
    activities = recording.tables["activities"]
    texts = {each["id"]: each["text"] for each in recording.tables["strings"].to_pylist()}
    texts[0] = ""  # of copies
    names = dict(zip(plain(activities["correlation"]), plain(activities["name"]), strict=True))
    largest = max(size.values())
    strides = np.atleast_1d(stride)
    elements, apart, whole = [], [], []
    for number, row in enumerate(table.to_pylist()):
        name = texts[names[row["correlation"]]]
        of_field = name in {READS, WRITES} and size[row["block"]] == largest
        distance = int(strides[number // 4 % len(strides)]) if of_field else 0
        elements.append(0 if name == PRODUCT else 2 * element if wider and name == ALL else element)
        apart.append(distance)
        whole.append(0 if distance or name == PRODUCT else size[row["block"]])
    for column, values in (("element", elements), ("stride", apart), ("bytes", whole)):
        place = table.column_names.index(column)
        field = table.schema.field(place)
        table = table.set_column(place, field, pa.array(values, field.type))
    return Recording({**recording.tables, "launch_blocks": table}, recording.manifest)


def of(recording):
    return [each for each in findings(recording, small=True) if each.rule == "R89"]


@pytest.mark.parametrize("given", [False, True])
def test_fields_that_kernels_use_one_by_one_should_not_be_interleaved(given):
    program = partial(diffuses, given=given)
    recording = recorded(program)
    (finding,) = of(recording)

    before, after = recording, recorded(partial(program, apart=False), stride=0)
    assert finding.title.startswith(
        f"{2 * ROUNDS} kernels use every 6th element of what `data, out = "
        "cp.empty(FIELDS * points), cp.empty(points)` makes, and take "
    )
    assert "elements of 4 B that are 24 B apart" in finding.reason
    assert finding.saved_ns == pytest.approx(before.duration_ns - after.duration_ns, rel=0.1)
    assert of(after) == []


def test_no_more_is_saved_than_bytes_in_vain_take():
    """A kernel that computes for long does not wait for memory."""
    (finding,) = of(recorded(partial(diffuses, each=1e-3)))

    in_vain = POINTS * (STRIDE - ELEMENT) * (1 + 2) / RATE
    assert finding.saved_ns <= 1.1e9 * ROUNDS * in_vain
    assert finding.saved_ns < 0.25e9 * 2 * ROUNDS * 1e-3


@pytest.mark.parametrize(
    ("program", "known"),
    [
        pytest.param(partial(diffuses, others=[ALL]), {}, id="other kernels use all elements"),
        pytest.param(partial(diffuses, others=[PRODUCT]), {}, id="products use all elements"),
        pytest.param(partial(diffuses, rounds=3), {}, id="few kernels do"),
        pytest.param(reads_frames, {}, id="it takes longer to store"),
        pytest.param(partial(diffuses, points=POINTS // 64), {}, id="the array is small"),
        pytest.param(diffuses, {"stride": 0}, id="rows are contiguous"),
        pytest.param(diffuses, {"stride": ELEMENT}, id="elements are next to each other"),
        pytest.param(partial(diffuses, each=20.2e-6), {}, id="kernels take no longer than others"),
        pytest.param(
            partial(diffuses, rounds=20, each=1e-3),
            {"stride": [8, 16, 32, 64, 128, 256]},
            id="the distances differ",
        ),
    ],
)
def test_elements_that_are_apart_are_no_finding_if(program, known):
    assert of(recorded(program, **known)) == []


def test_parts_of_wider_elements_are_no_fields():
    def with_pairs(cp):
        data = cp.empty(FIELDS * POINTS)
        use(cp, ALL, reads=[data], writes=[data], moved=1)
        for _ in range(ROUNDS):
            moved = 2 * STRIDE * POINTS
            use(cp, READS, reads=[data], writes=[cp.empty(POINTS)], moved=moved)

    assert len(of(recorded(with_pairs, stride=2 * ELEMENT))) == 1
    assert of(recorded(with_pairs, stride=2 * ELEMENT, wider=True)) == []


def test_ordinals():
    numbers = (2, 3, 4, 11, 12, 21, 22, 1003)

    assert [*map(_ordinal, numbers)] == [
        *("second", "third", "4th", "11th", "12th", "21st", "22nd", "1,003rd")
    ]
