"""Several processes on one GPU: recorded by an environment variable, merged into one recording."""

import os
import subprocess
import sys

import gpuviz

PROCESSES = 4
MIB = 1 << 20
PROGRAM = """
import multiprocessing
import cupy

def work(number):
    array = cupy.empty((number + 1) << 20, cupy.uint8)
    for _ in range(3):
        array += 1
    cupy.cuda.Device().synchronize()

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    children = [context.Process(target=work, args=(number,)) for number in range({processes})]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0
"""


def test_processes_on_one_gpu_are_told_apart(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.replace("{processes}", str(PROCESSES)))
    folder = tmp_path / "ranks"

    subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env=os.environ | {"GPUVIZ_RECORD": str(folder)},
        check=True,
        timeout=300,
    )
    merged = gpuviz.merge(folder)

    # The parent never touches the GPU.
    assert len(merged.processes) == PROCESSES
    (uuid,) = set(merged.table("devices")["uuid"].to_pylist())
    assert uuid
    peaks = sorted(merged.peak(device).bytes for device in merged.devices)
    assert peaks == [(number + 1) * MIB for number in range(PROCESSES)]
    assert merged.is_complete
    for process in merged.processes:
        assert process.clock_error == 0
        kernels = process.recording.kernels()
        assert sum(kernels["count"].to_pylist()) == 3
