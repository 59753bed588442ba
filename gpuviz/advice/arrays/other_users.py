"""Blocks that others use than the calls of their own stream: other streams, graphs, libraries."""

import numpy as np

from gpuviz.analysis.categories import block_categories
from gpuviz.analysis.launches import have_frame
from gpuviz.analysis.pools import private_pools
from gpuviz.analysis.touches import Touches
from gpuviz.data.call_stacks import Frame
from gpuviz.data.codes import CATEGORIES
from gpuviz.data.columns import plain
from gpuviz.data.recording_data import RecordingData

_WORKSPACE = CATEGORIES.index("workspace")
_FFT_OF_CUPY, _PLAN = "/cupy/fft/", "cufft.Plan"


def are_used_at_any_time(recording: RecordingData, used: Touches) -> np.ndarray:
    """Return which blocks belong to graphs, which use them when launched, or to libraries.

    Libraries keep workspaces for later calls, as CuPy does with the work areas of FFT plans.
    """
    pools = plain(recording.tables["memory_events"]["pool"])[used.blocks.alloc]
    _, categories = block_categories(recording)
    found: np.ndarray = np.isin(pools, private_pools(recording.tables))
    found |= categories == _WORKSPACE
    found |= have_frame(recording, used.blocks.stack, _makes_plan)
    return found


def _makes_plan(frame: Frame) -> bool:
    """Return whether a frame is of CuPy's code that makes a plan of cuFFT."""
    return _FFT_OF_CUPY in frame.filename and _PLAN in frame.source


def are_shared(recording: RecordingData, used: Touches) -> np.ndarray:
    """Return which blocks another stream than their own uses, or one that is unknown."""
    streams = plain(recording.tables["activities"]["stream"])
    seen = used.activity >= 0
    other = ~seen
    other[seen] = streams[used.activity[seen]] != used.blocks.stream[used.block[seen]]
    shared = np.zeros(len(used.blocks), bool)
    shared[used.block[other]] = True
    return shared
