"""The handles under which streams are known, and how their users know them."""

import threading
from typing import Any

# CU_STREAM_PER_THREAD: one handle for as many streams as there are threads.
PER_THREAD = 2
_TAG_BITS = 0x7


def known_handle(handle: int) -> int:
    """Return the handle under which native code knows a raw one.

    A per-thread default stream has a handle of its own for each thread, here for the calling one;
    see ``per_thread_stream`` in native/device/cuda_device.hpp.
    """
    return threading.get_native_id() << 8 | PER_THREAD if handle == PER_THREAD else handle


def stream_kind(handle: int) -> str:
    """Return the kind of a stream as far as its handle tells, in the words of ``streams``."""
    if handle in {0, 1}:
        return "default"
    return "per_thread_default" if handle & _TAG_BITS == PER_THREAD else "unknown"


def stream_name(handle: int) -> str:
    """Return how users know a stream of such a handle."""
    if handle in {0, 1}:
        return "default stream"
    if handle & _TAG_BITS == PER_THREAD:
        return f"per-thread default stream of thread {handle >> 8}"
    return f"stream {handle:#x}"


def stream_row(number: int, device: int, handle: int) -> dict[str, Any]:
    """Return the row of ``streams`` for a stream of which only the handle is known."""
    return {
        "id": number,
        "device": device,
        "handle": handle,
        "name": stream_name(handle),
        "kind": stream_kind(handle),
        "priority": 0,
        "created": 0,
        "destroyed": -1,
    }
