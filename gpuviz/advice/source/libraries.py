"""The library that a program's arrays belong to, which decides what a finding advises."""

import re
from collections.abc import Iterable, Mapping

import numpy as np

from gpuviz.analysis.xla import threads_of_xla
from gpuviz.data.call_stacks import Frame
from gpuviz.data.codes import FRAMEWORKS
from gpuviz.data.columns import codes
from gpuviz.data.recording_data import RecordingData

# What to do about modules of PyTorch that the host initializes, and copies to the GPU.
MODULES_ON_THE_GPU = (
    'Create the modules on the GPU, as in `with torch.device("cuda"): model = Model()`: then their '
    "parameters are initialized there, and nothing is copied."
)
# What copies a whole array to the host at once.
_TO_HOST = {
    "torch": "x.cpu() or x.tolist()",
    "numba": "x.copy_to_host()",
    "jax": "jax.device_get(x)",
}
_INITIALIZATION = re.compile(r"/torch/nn/(init\.py:|modules/module\.py:Module\.(to|cuda|_apply)\b)")
_FILLS_PARAMETERS = "/torch/nn/init.py"


def is_of(recording: RecordingData, library: str) -> bool:
    """Return whether most memory events with a known library are of one of `FRAMEWORKS`.

    A recording without any, whose arrays all existed before, is of JAX if XLA works in it.
    """
    counts = np.bincount(
        codes(recording.tables["memory_events"]["framework"], FRAMEWORKS).astype(np.int64),
        minlength=len(FRAMEWORKS),
    )
    if not counts[1:].any():
        return library == "jax" and bool(threads_of_xla(recording))
    return bool(2 * counts[FRAMEWORKS.index(library)] > counts[1:].sum())


def by_library(recording: RecordingData, texts: Mapping[str, str], otherwise: str) -> str:
    """Return the text for the library that a program's arrays belong to, by its name."""
    return next((text for library, text in texts.items() if is_of(recording, library)), otherwise)


def conversion_to_host(recording: RecordingData) -> str:
    """Return the call by which a program copies a whole array to the host."""
    return by_library(recording, _TO_HOST, "x.get() or x.tolist()")


def makes_modules(frames: Iterable[Frame]) -> bool:
    """Return whether a call stack is of modules of PyTorch that are initialized, or copied."""
    return any(_INITIALIZATION.search(f"{frame.filename}:{frame.name}") for frame in frames)


def initializes_modules(frames: Iterable[Frame]) -> bool:
    """Return whether a call stack fills parameters of new modules of PyTorch."""
    return any(frame.filename.endswith(_FILLS_PARAMETERS) for frame in frames)
