"""Ranks of an MPI program on one GPU, recorded by an environment variable."""

import os
import shutil
import subprocess
import sys

import pytest

import gpuviz

pytest.importorskip("mpi4py")
MPIEXEC = shutil.which("mpiexec")
pytestmark = [pytest.mark.gpu, pytest.mark.skipif(MPIEXEC is None, reason="there is no mpiexec")]

# Containers run as root, as which Open MPI runs programs only if it is told to.
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
RANKS = 4
ROUNDS = 25
MIB = 1 << 20
PROGRAM = """
import cupy
from mpi4py import MPI

world = MPI.COMM_WORLD
array = cupy.zeros((world.rank + 1) << 20, cupy.uint8)
stream = cupy.cuda.get_current_stream()
stream.synchronize()
world.barrier()
for step in range({rounds}):
    # The ranks take turns; each waits for its own work before it lets the next one begin.
    for rank in range(world.size):
        if rank == world.rank:
            array.fill(rank)
            stream.synchronize()
        world.barrier()
"""


def test_the_ranks_of_an_mpi_program_are_merged_in_their_true_order(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM.replace("{rounds}", str(ROUNDS)))
    folder = tmp_path / "ranks"

    subprocess.run(
        [MPIEXEC, "-n", str(RANKS), sys.executable, "program.py"],
        cwd=tmp_path,
        env=os.environ | AS_ROOT | {"GPUVIZ_RECORD": str(folder)},
        check=True,
        timeout=180,
    )
    merged = gpuviz.merge(folder)

    launches = [process.recording.manifest.launch for process in merged.processes]
    assert sorted(launch["rank"] for launch in launches) == list(range(RANKS))
    assert {launch["ranks"] for launch in launches} == {RANKS}
    peaks = sorted(merged.peak(device).bytes for device in merged.devices)
    assert peaks == [(number + 1) * MIB for number in range(RANKS)]
    rank_of = {device: process.rank for process in merged.processes for device in process.devices}
    rows = merged.table("activities").sort_by("time").to_pylist()
    steps = [rank_of[row["device"]] for row in rows if row["kind"] in {"kernel", "memset"}]
    assert steps[-RANKS * ROUNDS :] == list(range(RANKS)) * ROUNDS
