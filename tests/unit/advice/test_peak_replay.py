"""The peak after changes of lifetimes, against counting by hand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.advice.arrays.device_blocks import device_blocks
from gpuviz.advice.replay.peak_replay import Change, PeakReplay
from tests.examples import examples

UNIT = 1 << 20
ARRAYS = 4
kernels = st.lists(st.sets(st.integers(0, ARRAYS - 1), min_size=1), min_size=1, max_size=8)


def run(kernels):
    """Run a program with a line for each allocation and each kernel, and return its recording."""
    lines = [
        *(f"a{each} = gpu.empty({(each + 1) * UNIT})" for each in range(ARRAYS)),
        *(
            f"gpu.launch('k', duration=1e-6, reads=[{', '.join(f'a{each}' for each in used)}])"
            for used in kernels
        ),
        f"del {', '.join(f'a{each}' for each in range(ARRAYS))}",
    ]
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        exec(compile("\n".join(lines), "program.py", "exec"), {"gpu": gpu})  # noqa: S102 - own text
    return recorder.recording


def counted_peak(kernels):
    """Return the peak if each array is allocated for its first kernel and freed after the last."""
    uses = {
        array: [place for place, used in enumerate(kernels) if array in used]
        for array in range(ARRAYS)
    }
    return max(
        sum((array + 1) * UNIT for array, at in uses.items() if at and at[0] <= place <= at[-1])
        for place in range(len(kernels))
    )


@examples(60)
@given(kernels)
def test_arrays_that_live_from_their_first_to_their_last_line_have_the_counted_peak(kernels):
    (device,) = device_blocks(run(kernels))

    begin = np.where(device.is_unread, device.begin, device.first_needed)
    end = np.where(device.is_unread, device.begin, device.last)
    trimmed = Change(np.arange(len(device.begin)), begin, end)

    assert device.peak.bytes == sum(range(1, ARRAYS + 1)) * UNIT
    assert device.replay.peak_after([]) == device.peak.bytes
    assert device.replay.peak_after([trimmed]) == counted_peak(kernels)


@examples(60)
@given(kernels, st.integers(0, 8), st.integers(0, 8))
def test_of_changes_that_free_earlier_the_earliest_counts(kernels, one, other):
    (device,) = device_blocks(run(kernels))
    blocks = np.arange(len(device.begin))

    def freed_before(part):
        places = device.begin + (device.end - device.begin) * part // 9
        return Change(blocks, device.begin, places)

    first, second = freed_before(one), freed_before(other)
    earliest = freed_before(min(one, other))

    assert device.replay.peak_after([first, second]) == device.replay.peak_after([earliest])


def test_a_block_that_is_allocated_later_keeps_its_first_change():
    (device,) = device_blocks(run([{0}, {1}, {2, 3}, {0, 1}]))
    blocks = np.arange(len(device.begin))
    later = Change(blocks, device.first_needed, device.end)
    earlier = Change(blocks, device.begin, device.begin)

    assert device.replay.peak_after([later, earlier]) == device.replay.peak_after([later])


places = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(sorted)


@examples(100)
@given(
    st.lists(st.tuples(places, st.integers(1, 8), st.integers(0, 5), st.integers(0, 8)), min_size=1)
)
def test_blocks_that_are_freed_earlier_can_be_smaller_too(blocks):
    begin, end = (np.array([each[0][side] for each in blocks]) for side in (0, 1))
    size = np.array([each[1] for each in blocks])
    earlier = np.clip([each[2] for each in blocks], begin, end)
    smaller = np.minimum([each[3] for each in blocks], size)
    rows = np.arange(len(blocks))
    replay = PeakReplay(7, begin, end, size)

    peak = replay.peak_after([Change(rows, begin, earlier), Change(rows, begin, end, smaller)])

    alive = (begin[:, None] <= np.arange(7)) & (np.arange(7) < earlier[:, None])
    assert peak == (alive * smaller[:, None]).sum(axis=0).max()
