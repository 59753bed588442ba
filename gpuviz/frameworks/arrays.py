"""Addresses of arrays of any library."""

from typing import Any

_INTERFACE = "__cuda_array_interface__"


def address_of(value: Any) -> int:
    """Return the address of an array's first element on a GPU, 0 if it is no such array.

    An array is what has ``__cuda_array_interface__``, as those of CuPy and Numba, or is a
    ``gpuviz.SimulatedGPU``'s. Nothing of any other value is called.
    """
    kind = type(value)
    if kind.__module__ == "gpuviz.simulation.gpu" and kind.__name__ == "SimulatedArray":
        return int(value.ptr)
    if not hasattr(kind, _INTERFACE):
        return 0
    try:
        return int(getattr(value, _INTERFACE)["data"][0])
    except Exception:  # noqa: BLE001 - a foreign property may raise anything
        return 0
