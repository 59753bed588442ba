"""Programs on a simulated GPU, and what a recording of them concludes."""

from collections.abc import Callable

import gpuviz
from gpuviz.advice.finding import Finding
from gpuviz.advice.findings import findings
from gpuviz.recording.recording import Recording

MIB = 1 << 20


def recorded(program: Callable[[gpuviz.SimulatedGPU], None]) -> Recording:
    """Return the recording of a program that frees all its arrays."""
    gpu = gpuviz.SimulatedGPU()
    with gpuviz.record(device=gpu) as recorder:
        program(gpu)
        gpu.synchronize()
    return recorder.recording


def found(program: Callable[[gpuviz.SimulatedGPU], None], rule: str) -> list[Finding]:
    """Return the findings of a rule about a program, small ones too."""
    return [each for each in findings(recorded(program), small=True) if each.rule == rule]


def saved(
    before: Callable[[gpuviz.SimulatedGPU], None], after: Callable[[gpuviz.SimulatedGPU], None]
) -> int:
    """Return by how many bytes the second program's peak is lower than the first's."""
    return recorded(before).peak().bytes - recorded(after).peak().bytes
