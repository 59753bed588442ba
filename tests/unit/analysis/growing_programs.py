"""Recordings of programs whose memory grows."""

import gpuviz


def of(program):
    """Return the recording of a program whose ``kept`` outlives it."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    kept = []
    with gpuviz.record(device=gpu) as recorder:
        program(gpu, kept)
        gpu.synchronize()
    return recorder.recording
