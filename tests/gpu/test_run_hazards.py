"""``gpuviz run --hazards --fail`` with a GPU: an array that is freed while a stream reads it."""

import pytest

import gpuviz
from tests.integration.commands.programs import GPUVIZ, run, said

pytestmark = pytest.mark.gpu

PROGRAM = """\
import sys
import cupy

BYTES = 1 << 20
SPIN = cupy.RawKernel(
    "extern \\"C\\" __global__ void spin(long long cycles)"
    " { long long start = clock64(); while (clock64() - start < cycles) {} }",
    "spin",
)
copies, compute = (cupy.cuda.Stream(non_blocking=True) for _ in range(2))

def work():
    result = cupy.zeros(BYTES, cupy.uint8)
    with copies:
        image = cupy.full(BYTES, 5, cupy.uint8)
    cupy.cuda.Device().synchronize()
    with compute:
        SPIN((1,), (1,), (cupy.int64(100_000_000),))
        cupy.add(image, 0, out=result)
    if "waits" in sys.argv:
        copies.wait_event(compute.record())
    del image
    with copies:
        following = cupy.full(BYTES, 9, cupy.uint8)
    cupy.cuda.Device().synchronize()
    return following

work()
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "race.py").write_text(PROGRAM)
    return tmp_path


def test_memory_that_is_reused_while_a_stream_reads_it_fails_with_both_lines(folder):
    done = run([GPUVIZ, "run", "--hazards", "--fail", "race.py"], folder)
    reuse = [
        each
        for each in gpuviz.load(folder / "race.gpuviz").hazards()
        if each.kind == "reuse" and each.tier != "latent"
    ]

    assert done.returncode == 3
    assert any("hazard" in line and "between streams: " in line for line in said(done))
    assert [(each.first.source, each.second.source) for each in reuse] == [
        (
            "cupy.add(image, 0, out=result)",
            "following = cupy.full(BYTES, 9, cupy.uint8)",
        )
    ]
    line = PROGRAM.splitlines().index("    del image") + 1
    assert reuse[0].freed == f"work ({folder / 'race.py'}:{line})"


def test_with_the_wait_it_passes(folder):
    done = run([GPUVIZ, "run", "--hazards", "--fail", "race.py", "waits"], folder)

    assert done.returncode == 0, done.stderr
    assert "no hazards between streams" in said(done)


def test_work_on_the_default_stream_fails_where_it_is_forbidden(folder):
    done = run([GPUVIZ, "run", "--forbid-default-stream", "--fail", "race.py"], folder)
    rows = gpuviz.load(folder / "race.gpuviz").default_stream_work().to_pylist()

    assert done.returncode == 3
    assert {row["source"] for row in rows} == {"result = cupy.zeros(BYTES, cupy.uint8)"}
