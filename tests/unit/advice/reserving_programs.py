"""Programs whose allocator reserves memory, and what is found."""

from contextlib import suppress

import gpuviz
from gpuviz import _core
from tests.unit.advice.programs import MIB


def recorded(program, *, memory=320, settings=""):
    """Return the recording of a program on a GPU with this many MiB."""
    gpu = gpuviz.SimulatedGPU(memory=memory * MIB, settings=settings, real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        with suppress(_core.OutOfMemoryError):
            program(gpu)
        gpu.synchronize()
    return recorder.recording


def rules(recording):
    return [each.rule for each in recording.findings(small=True) if each.saved_reserved_bytes]


def one(recording, rule):
    (finding,) = (each for each in recording.findings(small=True) if each.rule == rule)
    return finding


def peak(recording):
    return recording.memory_stats()["reserved_bytes.all.peak"]
