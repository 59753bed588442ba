"""Whether a program may need the precision that it computes in."""

import re

import numpy as np

from gpuviz.advice.arrays.training_blocks import BACKWARD, OPTIMIZER
from gpuviz.advice.replay.schedule import Schedule
from gpuviz.advice.source.optimizers import optimizer_step
from gpuviz.analysis.launches import phases_of, stacks_of, values_of_stacks
from gpuviz.data.columns import distinct, plain
from gpuviz.data.strings import texts

# The factors and solutions of linear systems.
_DECOMPOSITION = re.compile(
    r"potr[fis]|getr[fis]|geqr|gesv|tr[st]m|trsv|syev|heev|cusolver|larf[bt]"
)
_COMPLEX = re.compile(r"complex<double>|fft|zgemm")
# Their steps need more precise gradients than those of the others.
_SECOND_ORDER = frozenset({"LBFGS"})


def decomposes(schedule: Schedule) -> bool:
    """Return whether kernels decompose matrices."""
    return any(map(_DECOMPOSITION.search, _names(schedule)))


def is_complex(schedule: Schedule) -> bool:
    """Return whether kernels compute with complex numbers, such as Fourier transforms."""
    return any(map(_COMPLEX.search, _names(schedule)))


def _names(schedule: Schedule) -> list[str]:
    """Return the names of a recording's work."""
    tables = schedule.recording.tables
    return texts(tables, distinct(plain(tables["activities"]["name"])[schedule.rows]))


def differentiates_gradients(schedule: Schedule) -> bool:
    """Return whether a backward pass is differentiable itself."""
    tables = schedule.recording.tables
    stacks = distinct(stacks_of(tables, schedule.call[schedule.call >= 0]))
    again = values_of_stacks(tables, "differentiable", stacks) == 1
    return bool((again & (phases_of(tables, stacks) == BACKWARD)).any())


def optimizers_of(schedule: Schedule) -> set[str]:
    """Return the classes of PyTorch's optimizers that run."""
    recording = schedule.recording
    stacks = distinct(stacks_of(recording.tables, schedule.call[schedule.call >= 0]))
    of_steps = stacks[phases_of(recording.tables, stacks) == OPTIMIZER]
    return {optimizer_step(recording, each).name for each in np.unique(of_steps).tolist()} - {""}


def is_of_first_order(schedule: Schedule) -> bool:
    """Return whether optimizers, if any, use gradients that are not differentiated."""
    return not differentiates_gradients(schedule) and not optimizers_of(schedule) & _SECOND_ORDER
