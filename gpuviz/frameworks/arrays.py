"""Addresses of arrays of any library."""

from typing import Any

_INTERFACE = "__cuda_array_interface__"


def address_of(value: Any) -> int:
    """Return the address of a GPU array's first element; 0 if the value is not such an array.

    An array has ``__cuda_array_interface__``, such as those of CuPy and Numba, or belongs to a
    ``gpuviz.SimulatedGPU``. No code of other values is called.
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
