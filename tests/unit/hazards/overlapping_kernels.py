"""A simulated GPU whose kernels overlap, and the reports of a program's hazards."""

from functools import partial

import gpuviz
from gpuviz.hazards.one_change import of_one_change
from gpuviz.present.text import hazards_text

BYTES = 1 << 20


class Gpu:
    """A simulated GPU whose kernels on different streams overlap."""

    def __init__(self):
        self.gpu = gpuviz.SimulatedGPU(real_time=False)
        self.record = gpuviz.record(device=self.gpu)
        # Without frames of their own.
        self.Stream = partial(self.gpu.Stream, non_blocking=True)
        self.launch = partial(self.gpu.launch, duration=1e-3, share=0.1)
        self.kept = []

    def empty(self):
        """Return an array that is kept until the end."""
        self.kept.append(self.gpu.empty(BYTES))
        return self.kept[-1]


def reported(gpu, program):
    """Return the reports of a program, as groups of hazards and as text."""
    with gpu.record as recorder:
        program(gpu)
        gpu.gpu.synchronize()
    recording = recorder.recording
    found = recording.hazards()
    return of_one_change(recording, found), hazards_text(recording, found)
