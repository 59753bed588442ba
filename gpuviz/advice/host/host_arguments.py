"""Copies that a library makes of the host's arrays which a kernel gets."""

import re

import numpy as np

from gpuviz.advice.replay.trace import COPY, Trace
from gpuviz.analysis.launches import have_frame, stacks_of

# Numba copies what is no array of the GPU to it before a launch and back after it, unless
# `cuda.In` or `cuda.Out` says that one way is enough.
_OF_ARGUMENTS = re.compile(r"numba[/\\]cuda[/\\](?:\w+[/\\])*args\.py$")


def copies_of_arguments(trace: Trace) -> np.ndarray:
    """Return which work copies arrays of the host that a kernel gets as arguments."""
    found = np.zeros(len(trace.rows), bool)
    copies = np.flatnonzero((trace.kind == COPY) & (trace.call >= 0))
    stacks = stacks_of(trace.recording.tables, trace.call[copies])
    found[copies] = have_frame(
        trace.recording, stacks, lambda frame: bool(_OF_ARGUMENTS.search(frame.filename))
    )
    return found
