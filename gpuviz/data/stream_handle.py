"""Stream handles, and rows of the table ``streams``."""

import threading
from typing import Any

from gpuviz import _core
from gpuviz.data.tables import DICTIONARIES

# CU_STREAM_PER_THREAD, which denotes a different stream in each thread.
PER_THREAD = 2
DEFAULT_STREAM = _core.stream_name(0)
# Of a stream that the driver made for itself, such as that of a graph's branch.
NO_HANDLE = 2**64 - 1


def known_handle(handle: int) -> int:
    """Return the native core's handle for a raw one.

    The per-thread default stream gets a separate handle for each thread, here the calling one; see
    ``per_thread_stream`` in native/device/cuda_device.hpp.
    """
    return threading.get_native_id() << 8 | PER_THREAD if handle == PER_THREAD else handle


def stream_kind(handle: int) -> str:
    """Return the kind of a stream, as in ``streams``, as far as its handle determines it."""
    return DICTIONARIES["streams", "kind"][_core.stream_kind(handle)]


def stream_row(  # noqa: PLR0913, PLR0917 - a row of the native table
    number: int,
    device: int,
    handle: int,
    name: str = "",
    kind: int = 0,
    priority: int = 0,
    created: int = 0,
    destroyed: int = -1,
) -> dict[str, Any]:
    """Return a row of ``streams``; unknown values are inferred from the handle where possible."""
    return {
        "id": number,
        "device": device,
        "handle": handle,
        "name": name or _core.own_name(number, handle),
        "named": int(name != ""),
        "kind": DICTIONARIES["streams", "kind"][kind] if kind else stream_kind(handle),
        "priority": priority,
        "created": created,
        "destroyed": destroyed,
    }
