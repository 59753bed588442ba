"""`gpuviz.range`: named parts of a program."""

import functools
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar, cast

from gpuviz import _core
from gpuviz.data.tables import DICTIONARIES
from gpuviz.recorder.stream_ranges import StreamRange

Function = TypeVar("Function", bound=Callable[..., Any])

RANGE, LOAD, COMPILE = (
    DICTIONARIES["ranges", "kind"].index(kind) for kind in ("range", "load", "compile")
)
_get_ident = threading.get_ident


class range:  # noqa: A001, N801 - the name that CUDA's users know
    """A named part of the program; events in it refer to it.

    Use it in a ``with`` block, or as a decorator of a function or an ``async def`` function, with
    or without a recording. Ranges nest; an object may be entered repeatedly, and by several threads
    at once. Inside coroutines, each ``with`` should create its own object.

    Args:
        name: Name of the range.
        stream: A CuPy stream on which to measure the range as an activity as well, from the end of
            the work queued before it to the end of the work queued within. It has no effect if
            CUPTI records streams, since the launches within the range are known then.

    Raises:
        TypeError: ``name`` is not a str, or ``stream`` no stream.
    """

    __slots__ = ("_name", "_open", "_stream")

    _session: ClassVar[_core.Session | None] = None
    _begin_on_stream: ClassVar["BeginOnStream | None"] = None

    def __init__(self, name: str, *, stream: Any = None) -> None:
        if not isinstance(name, str):
            raise TypeError(f"name must be a str, got {name!r}")
        if stream is not None and not hasattr(stream, "ptr"):
            raise TypeError(f"stream must be a cupy.cuda.Stream, got {stream!r}")
        self._name = name.encode(errors="backslashreplace")
        self._stream = stream
        # Open ranges of each thread, innermost last.
        self._open: dict[int, list[_Open]] = {}

    def __enter__(self) -> Self:
        session = range._session
        if session is None:
            return self
        measured = None
        if self._stream is not None and range._begin_on_stream is not None:
            measured = range._begin_on_stream(self._name, self._stream)
        number = _core.begin_range(session, self._name, RANGE)
        self._open.setdefault(_get_ident(), []).append((session, number, measured))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if not self._open:
            return
        entered = self._take_innermost()
        if entered is not None:
            session, number, measured = entered
            _core.end_range(session, number)
            if measured is not None:
                measured.end()

    def __call__(self, function: Function) -> Function:
        """Return a function whose calls are ranges of this name and stream."""
        import inspect

        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"gpuviz.range cannot decorate the generator function {function!r}, whose body "
                "runs outside its call; use `with gpuviz.range(...)` inside it",
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def call_async(*args: Any, **keywords: Any) -> Any:
                if range._session is None:
                    return await function(*args, **keywords)
                with self._again():
                    return await function(*args, **keywords)

            return cast("Function", call_async)

        @functools.wraps(function)
        def call(*args: Any, **keywords: Any) -> Any:
            if range._session is None:
                return function(*args, **keywords)
            with self._again():
                return function(*args, **keywords)

        return cast("Function", call)

    def __repr__(self) -> str:
        return f"gpuviz.range({self._name.decode()!r})"

    def _again(self) -> Self:
        other = object.__new__(type(self))
        other._name, other._stream, other._open = self._name, self._stream, {}
        return other

    def _take_innermost(self) -> "_Open | None":
        """Remove this thread's innermost range; any thread's, if a generator changed threads."""
        own = _get_ident()
        for thread in (own, *self._open):
            try:
                stack = self._open[thread]
                entered = stack.pop()
            except (KeyError, IndexError):
                continue
            if not stack and thread == own:
                self._open.pop(thread, None)
            return entered
        return None


# A session, and the id of a range in it.
Opened = tuple[_core.Session, int]
_Open = tuple[_core.Session, int, "StreamRange | None"]
BeginOnStream = Callable[[bytes, Any], "StreamRange | None"]


def are_recorded() -> bool:
    """Return whether ranges are recorded now."""
    return range._session is not None  # noqa: SLF001


def begin(name: bytes, kind: int) -> Opened | None:
    """Begin a range of some kind on the calling thread; None without a recording."""
    session = range._session  # noqa: SLF001
    return None if session is None else (session, _core.begin_range(session, name, kind))


def end(opened: Opened | None) -> None:
    """End a range that `begin` returned."""
    if opened is not None:
        _core.end_range(*opened)


def record_into(session: _core.Session | None, begin_on_stream: BeginOnStream | None) -> None:
    """Record all ranges into this session from now on; None for no session.

    Ranges with a stream are passed to ``begin_on_stream``, their name as UTF-8, unless it is None.
    """
    range._session, range._begin_on_stream = session, begin_on_stream  # noqa: SLF001
