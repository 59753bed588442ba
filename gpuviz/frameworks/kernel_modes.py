"""Declares how kernels use their parameters."""

from collections.abc import Iterable

from gpuviz import _core
from gpuviz.data.tables import DICTIONARIES

_NUMBERS = {mode: number for number, mode in enumerate(DICTIONARIES["launch_blocks", "mode"])}


def declare(name: str, modes: Iterable[str]) -> None:
    """Declare the modes of the leading parameters of the kernels of a name, as a binary has it."""
    _core.declare_kernel_modes(name, [_NUMBERS[mode] for mode in modes])
