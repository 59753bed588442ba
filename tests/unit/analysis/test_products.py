"""Which operand a product of matrices writes, of kernels that do not say it."""

import pytest

import gpuviz
from gpuviz.analysis.touches import touches
from gpuviz.data.tables import DICTIONARIES
from gpuviz.recording import Recording
from tests.unit.advice.programs import with_unknown_modes
from tests.unit.recording.from_activities import rows_of

MIB = 1 << 20
SIZE, PRODUCT = 16 * MIB, "nvjet_sm90_tst_64x64_splitK"


def multiplied(*, names_area):
    """Return the recording of a product with a work area, as that of cuBLAS under PyTorch."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        area, x, y = (gpu.empty(SIZE) for _ in range(3))
        for each in (area, x, y):
            gpu.copy_to_device(each)
        result = gpu.empty(SIZE)
        gpu.launch(PRODUCT, reads=[x, y, result, area], duration=1e-3)
        gpu.synchronize()
    recording = with_unknown_modes(recorder.recording, PRODUCT)
    first = recording.tables["memory_events"].to_pylist()[0]
    tensor = {"time": first["time"], "address": first["address"], "category": "workspace"}
    changed = {"tensors": rows_of("tensors", [tensor] if names_area else [])}
    return Recording({**recording.tables, **changed}, recording.manifest)


@pytest.mark.parametrize(
    ("names_area", "expected"),
    [
        (True, {0: "unknown", 1: "read", 2: "read", 3: "write"}),
        (False, dict.fromkeys(range(4), "unknown")),
    ],
)
def test_a_work_area_that_its_owner_names_is_no_operand(names_area, expected):
    used = touches(multiplied(names_area=names_area))

    words = DICTIONARIES["launch_blocks", "mode"]
    found = {
        int(block): words[mode]
        for block, mode in zip(used.block[-4:].tolist(), used.mode[-4:].tolist(), strict=True)
    }
    assert found == expected
