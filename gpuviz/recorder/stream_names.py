"""Names of streams, given by the user."""

import weakref
from typing import TYPE_CHECKING, Any

from gpuviz import _core
from gpuviz.data.stream_handle import known_handle

if TYPE_CHECKING:
    import cupy

Key = tuple[int, int]


class StreamNames:
    """Names by device and handle, until the stream is destroyed."""

    def __init__(self) -> None:
        self._names: dict[Key, str] = {}
        self._session: _core.Session | None = None

    def begin(self, session: _core.Session) -> None:
        """Use the names in this session, including those given before."""
        self._session = session
        for (device, handle), name in tuple(self._names.items()):
            _core.name_stream(session, device, handle, name)

    def end(self) -> None:
        """Stop using the names in the session, and remove those of destroyed streams."""
        session, self._session = self._session, None
        if session is not None:
            last = {(device, handle): ended for _, device, handle, *_, ended in session.streams()}
            for key, ended in last.items():
                if ended >= 0:
                    self._names.pop(key, None)

    def abandon_after_fork(self) -> None:
        """Detach from the session without using it."""
        self._session = None

    def remember(self, key: Key, name: str) -> None:
        """Add a name."""
        self._names[key] = name
        if self._session is not None:
            _core.name_stream(self._session, *key, name)

    def forget(self, key: Key, name: str) -> None:
        """Remove a name for later recordings; the active one keeps it."""
        if self._names.get(key) == name:
            del self._names[key]


names = StreamNames()


def name_stream(stream: "cupy.cuda.Stream | int", name: str, *, device: int | None = None) -> None:
    """Name a stream in the active recording and in later ones.

    The name is kept as long as the stream exists; for a raw handle, until it is named again.

    Args:
        stream: A CuPy stream or a raw handle.
        name: The name to show; empty to show the handle again.
        device: Ordinal of the stream's device; the stream's own, or CuPy's current device, by
            default.

    Raises:
        TypeError: ``stream`` is neither a stream nor an integer, or ``name`` is not a str.
        DeviceUnavailableError: No device is given, and CuPy or a usable driver is missing.
    """
    if not isinstance(name, str):
        raise TypeError(f"name must be a str, got {name!r}")
    handle = getattr(stream, "ptr", stream)
    if not isinstance(handle, int) or isinstance(handle, bool):
        raise TypeError(
            f"stream must be a cupy.cuda.Stream or a handle as int, got {type(stream).__name__}",
        )
    key = (_device(stream, device), known_handle(handle))
    text = name.encode(errors="backslashreplace").decode()
    names.remember(key, text)
    if not isinstance(stream, int) and handle > _LAST_DEFAULT:
        weakref.finalize(stream, names.forget, key, text).atexit = False


_LAST_DEFAULT = 2  # 0, 1 and 2 are the handles of default streams


def _device(stream: Any, device: int | None) -> int:
    own = getattr(stream, "device_id", -1) if device is None else device
    if own >= 0:
        return int(own)
    from gpuviz.frameworks.cupy_current import current_device

    return current_device()
