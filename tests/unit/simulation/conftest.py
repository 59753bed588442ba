import pytest

import gpuviz


@pytest.fixture
def gpu():
    """Return a GPU whose programs finish immediately and deterministically."""
    return gpuviz.SimulatedGPU(memory=1 << 30, real_time=False)


@pytest.fixture
def recorded(gpu):
    """Record a program of the GPU, and return the recording."""

    def record(program, *arguments):
        with gpuviz.record(device=gpu) as recorder:
            program(gpu, *arguments)
        return recorder.recording

    return record
