"""Programs that keep GPU memory alive by frames: of generators, coroutines and exceptions."""

import contextlib
import types
from collections.abc import Iterator
from typing import Any

from tests.unit.ownership.kept_program import SIZE, Program


def _generator(gpu: Any) -> Any:
    def batches() -> Iterator[int]:
        batch = gpu.empty(SIZE)
        yield 1
        yield batch.nbytes

    found = batches()
    next(found)
    return found


def _generator_argument(gpu: Any) -> Any:
    def batches(batch: Any) -> Iterator[Any]:
        yield batch

    return batches(gpu.empty(SIZE))


def _delegating_generator(gpu: Any) -> Any:
    def outer() -> Iterator[int]:
        yield from _generator(gpu)

    found = outer()
    next(found)
    return found


def _coroutine(gpu: Any) -> Any:
    @types.coroutine
    def suspend() -> Iterator[None]:
        yield

    async def serve() -> None:
        request = gpu.empty(SIZE)
        await suspend()
        del request

    found = serve()
    found.send(None)
    return found


def _async_generator(gpu: Any) -> Any:
    async def stream() -> Any:
        chunk = gpu.empty(SIZE)
        yield 1
        yield chunk

    found = stream()
    with contextlib.suppress(StopIteration):
        found.asend(None).send(None)
    return found


def _exception(gpu: Any) -> Any:
    def fail() -> None:
        lost = gpu.empty(SIZE)
        raise ValueError(lost.nbytes)

    try:
        fail()
    except ValueError as error:
        return error


def _context_of_exception(gpu: Any) -> Any:
    def fail() -> None:
        raise _exception(gpu)

    try:
        try:
            fail()
        finally:
            raise KeyError
    except KeyError as error:
        return error


def _cause_of_exception(gpu: Any) -> Any:
    error = KeyError()
    error.__cause__ = _exception(gpu)
    return error


def _exception_argument(gpu: Any) -> Any:
    return ValueError("failed on", gpu.empty(SIZE))


def _exception_group(gpu: Any) -> Any:
    return ExceptionGroup("several", [_exception(gpu)])


def _traceback(gpu: Any) -> Any:
    return _exception(gpu).__traceback__


def _frame(gpu: Any) -> Any:
    return _exception(gpu).__traceback__.tb_next.tb_frame


FRAMES: dict[str, Program] = {
    "a generator": Program(_generator, "generator", "local `batch` of generator _generator"),
    "a generator's argument": Program(_generator_argument, "generator", "local `batch` of"),
    "yield from": Program(_delegating_generator, "generator", "local `batch` of generator"),
    "a coroutine": Program(_coroutine, "coroutine", "local `request` of coroutine"),
    "an async generator": Program(_async_generator, "variable", "async_generator"),
    "an exception": Program(_exception, "variable", "local `lost` of _exception"),
    "an exception's context": Program(_context_of_exception, "variable", "local `lost` of"),
    "an exception's cause": Program(_cause_of_exception, "variable", "local `lost` of"),
    "an exception's argument": Program(_exception_argument, "variable", "exception ValueError"),
    "a group of exceptions": Program(_exception_group, "variable", "local `lost` of"),
    "a traceback": Program(_traceback, "variable", "local `lost` of"),
    "a frame": Program(_frame, "variable", "local `lost` of"),
}
