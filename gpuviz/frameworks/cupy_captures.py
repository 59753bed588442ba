"""CuPy's own captures of graphs, with a private pool for each."""

from collections.abc import Callable
from functools import cache, wraps
from types import ModuleType
from typing import Any

from gpuviz.allocator.graph import Capture, Graph, GraphPool, allocator_of, is_ours
from gpuviz.frameworks.cupy_current import import_cupy


class CapturedGraph(Graph):
    """What ``end_capture`` returns: the ``cupy.cuda.Graph``, and the memory that it uses."""

    def launch(self, stream: Any = None) -> None:
        """Run the graph on ``stream``, by default on the current one."""
        self.replay(import_cupy().cuda.get_current_stream() if stream is None else stream)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._executable, name)


@cache
def watch_captures(cupy: ModuleType, is_wanted: Callable[[], bool]) -> None:
    """Give graphs that CuPy captures their own memory, where that is wanted when they begin."""
    streams = getattr(cupy.cuda.stream, "_BaseStream", None)  # the class of all streams
    if streams is None:
        return
    begin, end = streams.begin_capture, streams.end_capture
    captures: dict[int, Capture] = {}

    @wraps(begin)
    def begin_capture(stream: Any, *arguments: Any, **named: Any) -> None:
        def call() -> None:
            begin(stream, *arguments, **named)

        if not is_wanted() or stream.is_capturing() or is_ours(stream):
            return call()
        allocator = allocator_of(stream)
        capture = Capture(stream, allocator, CapturedGraph(stream, GraphPool(allocator)))
        capture.begin(call)
        captures[stream.ptr] = capture
        return None

    @wraps(end)
    def end_capture(stream: Any) -> Any:
        capture = captures.pop(stream.ptr, None)
        if capture is None:
            return end(stream)
        capture.end(lambda: end(stream))
        return capture.graph

    streams.begin_capture, streams.end_capture = begin_capture, end_capture
