"""Peaks after changes of lifetimes, against counting by hand."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import gpuviz
from gpuviz.advice.memory_changes import Change, device_blocks
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
    assert device.peak_after([]) == device.peak.bytes
    assert device.peak_after([trimmed]) == counted_peak(kernels)
