"""JAX's memory during a recording, by samples; it never imports jax.

JAX takes an arena from the driver and tells nobody what it does with it. It can be asked for its
live arrays, with the line that made each, and for the bytes in use, with their highest level.
"""

import os
import re
import sys
import threading
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

from gpuviz import _core
from gpuviz.data.manifest import POOL_BYTES
from gpuviz.frameworks.jax_arrays import (
    KnownArrays,
    Part,
    clients,
    line_of,
    statistics_of_devices,
)
from gpuviz.quantities import format_bytes, format_counted
from gpuviz.recorder.samples import Samples

ALLOCATOR = "JAX's allocator"
# A made-up address: above all of CUDA's, below those of arrays.
_REST_ADDRESS = 1 << 60
_EXHAUSTED = re.compile(
    r"RESOURCE_EXHAUSTED: Out of memory (?:while trying to allocate|allocating) "
    r"(\d+(?:\.\d+)?) ?(bytes|KiB|MiB|GiB|TiB|B)"
)
_UNITS = {"B": 0, "bytes": 0, "KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40}
# What is in use and in no array: temporary results, programs and constants.
NOT_IN_ARRAYS = "JAX's memory outside of arrays"
# Of an explanation.
_MOST_LINES = 3


def is_in_use() -> bool:
    """Return whether JAX has used a GPU in this process."""
    return bool(clients())


class JaxMemory:
    """Sends what JAX has in use to a session, from `begin` to `end`.

    The events of an array are at the time of the sample that found it, or no longer found it. All
    else that is in use is one block, so that the level is right at each sample, and the highest one
    since the last sample, as JAX reports it, is not lost. What is in a block is the name of the
    innermost function of its call stack: the type of an array, or `NOT_IN_ARRAYS`.

    Args:
        stacks: Whether events have the call stacks that made the arrays.

    Attributes:
        statistics: The bytes of JAX's arena at the last sample, as `POOL_BYTES`, by device.
    """

    def __init__(self, *, stacks: bool) -> None:
        self.statistics: dict[int, dict[str, int]] = {}
        self._stacks = stacks
        self._lock = threading.RLock()
        self._samples = Samples(self._sample)
        self._session: _core.Session | None = None
        self._observer = _core.LibraryObserver(_core.Framework.jax)
        self._arrays = KnownArrays()
        self._blocks: dict[tuple[int, int], int] = {}
        # The highest level that is in the recording or was before it, by device.
        self._peaks: dict[int, int] = {}
        self._failures = _Failures(self._explain)
        self._has_used = False
        self._folder = Path()

    def prepare(self) -> None:
        """Do nothing: what it needs is imported with JAX."""

    def begin(self, session: _core.Session) -> None:
        """Push what JAX has in use, and record what it uses from now on."""
        self._session = session
        self._observer.set_session(session, stacks=self._stacks)
        with suppress(Exception):  # the device may have failed
            for device, statistics in statistics_of_devices():
                self._peaks[device] = statistics.get("peak_bytes_in_use", 0)
        self.poll()

    def poll(self) -> None:
        """Take a sample if it is time for one, as soon as JAX uses a GPU; called repeatedly."""
        with self._lock:
            if self._session is None:
                return
            if not self._has_used and is_in_use():
                self._has_used = True
                self._folder = Path(str(sys.modules["jax"].__file__)).parent
                self._failures.begin()
            if self._has_used:
                self._samples.take()

    def end(self) -> tuple[str, ...]:
        """Stop recording, and return messages for the user, in sentences."""
        with self._lock:
            self.poll()
            self._failures.end()
            if self._has_used and self._session is not None:
                self._samples.take(is_due=True)
            self._session = None
            self._observer.set_session(None)
        if not self._has_used:
            return ()
        note = (
            f"JAX's memory was sampled: {self._samples.cost} Arrays appear and disappear at the "
            "times of samples, and arrays that existed only between two samples are missing."
        )
        return (note,)

    def devices(self) -> list[int]:
        """Return the devices that JAX has used."""
        return self._observer.devices()

    def _sample(self) -> None:
        if self._session is None:
            return
        statistics = dict(statistics_of_devices())
        for device, each in statistics.items():
            if each.get("pool_bytes"):
                self.statistics[device] = {POOL_BYTES: each["pool_bytes"]}
        in_use = {
            device: each.get("bytes_in_use", 0) for device, each in statistics.items() if each
        }
        found = self._arrays.parts(in_use)
        blocks = {(device, address): size for (device, address, size), _ in found}
        self._keep_peaks(statistics)
        for (device, address), size in list(self._blocks.items()):
            if address != _REST_ADDRESS and blocks.get((device, address)) != size:
                self._free(device, address)
        # First, so that at no moment more is allocated than is in use.
        for device, used in in_use.items():
            arrays = sum(size for (on, _), size in blocks.items() if on == device)
            self._set_rest(device, used - arrays)
        for (device, address, size), array in found:
            if (device, address) not in self._blocks:
                self._allocate(device, address, size, self._stack_of(array))

    def _keep_peaks(self, statistics: dict[int, dict[str, int]]) -> None:
        """Push a level above all before that was reached since the last sample."""
        for device, each in statistics.items():
            peak = each.get("peak_bytes_in_use", 0)
            if peak > self._peaks.get(device, 0):
                self._peaks[device] = peak
                if peak > each.get("bytes_in_use", 0):
                    rest = self._blocks.get((device, _REST_ADDRESS), 0)
                    arrays = sum(size for (on, _), size in self._blocks.items() if on == device)
                    self._set_rest(device, peak - arrays + rest)

    def _set_rest(self, device: int, rest: int) -> None:
        """Let the block of what is in no array have this size."""
        rest = max(rest, 0)
        if rest != self._blocks.get((device, _REST_ADDRESS), 0):
            self._free(device, _REST_ADDRESS)
            if rest:
                self._allocate(device, _REST_ADDRESS, rest, self._stack([_CODE], [0]))

    def _allocate(self, device: int, address: int, size: int, stack: int) -> None:
        self._observer.allocated(device, address, size, 0, stack)
        self._blocks[device, address] = size

    def _free(self, device: int, address: int) -> None:
        if self._blocks.pop((device, address), 0):
            self._observer.freed(device, address, 0)

    def _stack_of(self, array: Any) -> int:
        shape = ",".join(map(str, array.shape))
        code = _code(f"{array.dtype.name}[{shape}]", str(self._folder / "array"))
        with suppress(Exception):  # another release may show it in another way
            codes, instructions = array.traceback.raw_frames()
            if all(type(each) is CodeType for each in codes):
                return self._stack([code, *codes], [0, *instructions])
        return self._stack([code], [0])

    def _stack(self, codes: list[CodeType], instructions: list[int]) -> int:
        assert self._session is not None  # noqa: S101
        return self._session.add_stack(codes, instructions) if self._stacks else 0

    def _explain(self, size: int) -> str:
        """Record a request that failed, and return what is known about it."""
        devices = list(statistics_of_devices())
        # The free memory of a single device may have been enough, but in pieces.
        short = [
            (device, statistics)
            for device, statistics in devices
            if len(devices) == 1
            or statistics.get("bytes_limit", 0) - statistics.get("bytes_in_use", 0) < size
        ]
        # Otherwise it is not known which of several devices had too little.
        if len(short) != 1:
            return ""
        device, statistics = short[0]
        with self._lock:
            if self._session is None:
                return ""
            self._samples.take(is_due=True)
            self._observer.out_of_memory(device, size)
            in_use = {device: statistics.get("bytes_in_use", 0)} if statistics else {}
            arrays = [each for each in self._arrays.parts(in_use) if each[0][0] == device]
        return _explanation(size, statistics, arrays)


def _explanation(size: int, statistics: dict[str, int], arrays: list[tuple[Part, Any]]) -> str:
    """Return what JAX had in use when a request failed, in sentences."""
    in_use, limit = statistics.get("bytes_in_use", 0), statistics.get("bytes_limit", 0)
    of_arrays = sum(part[2] for part, _ in arrays)
    sentences = [f"{format_bytes(size)} were requested."]
    if limit:
        sentences.append(
            f"JAX may use {format_bytes(limit)} of the device, and had {format_bytes(in_use)} in "
            f"use: {format_bytes(of_arrays)} in {format_counted(len(arrays), 'array')} and "
            f"{format_bytes(max(in_use - of_arrays, 0))} in temporary results, programs and "
            "constants."
        )
    largest = statistics.get("largest_free_block_bytes")
    if largest:
        sentences.append(f"The largest free block was {format_bytes(largest)}.")
    lines: dict[str, int] = {}
    for part, array in arrays:
        line = line_of(array)
        lines[line] = lines.get(line, 0) + part[2]
    most = sorted(lines.items(), key=lambda each: -each[1])[:_MOST_LINES]
    if most:
        made = ", ".join(f"{format_bytes(held)} at {line}" for line, held in most)
        sentences.append(f"The lines whose arrays held the most: {made}.")
    return " ".join(sentences)


@cache
def _code(name: str, file: str = "") -> CodeType:
    """Return the code of a function that there is not, to name what is in a block."""
    return (lambda: None).__code__.replace(
        co_name=name, co_qualname=name, co_filename=file, co_firstlineno=0, co_linetable=b""
    )


_CODE = _code(NOT_IN_ARRAYS)


class _Failures:
    """Learns of JAX's failed requests for memory from the exceptions that it creates.

    Args:
        explain: Called with the bytes requested, on the failing thread; its result is added to the
            exception.
    """

    def __init__(self, explain: Any) -> None:
        self._explain = explain
        self._kind: Any = None
        self._own: Any = None
        self._original: Any = None

    def begin(self) -> None:
        """Be called by each new error of JAX's runtime, unless this release has another class."""
        self._kind = getattr(sys.modules.get("jax.errors"), "JaxRuntimeError", None)
        self._original = vars(self._kind).get("__init__") if self._kind is not None else None
        if self._original is None:
            return
        original, explain, process = self._original, self._explain, os.getpid()

        def initialize(error: BaseException, *arguments: Any, **named: Any) -> None:
            original(error, *arguments, **named)
            with suppress(Exception):
                # In the child of a fork, a missing thread may hold the lock.
                size = failed_request(str(arguments[0])) if os.getpid() == process else 0
                added = explain(size) if size else ""
                if added:
                    error.add_note(f"gpuviz: {added}")

        self._own = initialize
        self._kind.__init__ = initialize

    def end(self) -> None:
        """Restore the class, unless somebody else has changed it too."""
        if self._own is not None and vars(self._kind).get("__init__") is self._own:
            self._kind.__init__ = self._original
        self._own = None


def failed_request(message: str) -> int:
    """Return the bytes that JAX could not allocate, from the text of its error; 0 if others."""
    found = _EXHAUSTED.match(message)
    return 0 if found is None else round(float(found[1]) * 2 ** _UNITS[found[2]])
