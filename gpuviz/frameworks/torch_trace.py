"""Recording of PyTorch's own caching allocator beside CuPy's; it never imports torch."""

import ctypes
import logging
import os
import re
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from gpuviz import _core
from gpuviz.allocator.failure_report import FailureReport, explanation_of
from gpuviz.allocator.settings import torch_settings
from gpuviz.data.manifest import NOT_LIMITED
from gpuviz.frameworks.cupy import total_memory
from gpuviz.frameworks.torch import is_installed as shared_with_torch
from gpuviz.frameworks.torch_backward import watch_backward
from gpuviz.frameworks.torch_modules import ModuleNames
from gpuviz.frameworks.torch_tensors import TensorCategories, workspace_sizes
from gpuviz.frameworks.torch_tracker import TrackerUnavailableError, tracker
from gpuviz.messages import log
from gpuviz.recorder.samples import Samples

_NATIVE = "native"
_IN_USE = "active_awaiting_free"
# A comma outside the brackets of a list.
_SEPARATOR = re.compile(r",(?![^\[]*\])")


@dataclass
class _Process:
    """What is attached to torch in this process, where it stays until the end."""

    observer: _core.TorchObserver | None = None
    library: ctypes.CDLL | None = None
    is_attached: bool = False
    lock: threading.RLock = field(default_factory=threading.RLock)
    recording: "TorchTrace | None" = None
    unavailable: str = ""  # why there is no tracker


_process = _Process()


def _abandon() -> None:
    _process.lock = threading.RLock()
    _process.recording = None
    if _process.observer is not None:
        _process.observer.abandon()


os.register_at_fork(after_in_child=_abandon)


class TorchTrace:
    """The trace of torch's allocator during one recording, from its first use of the GPU.

    Args:
        stacks: Whether events have call stacks.
    """

    def __init__(self, *, stacks: bool) -> None:
        self._stacks = stacks
        self._session: _core.Session | None = None
        self._is_awaited = True
        self._samples: Samples | None = None
        self._lender: _core.StackLender | None = None
        self._modules: ModuleNames | None = None
        self._tensors: TensorCategories | None = None
        self._note = ""

    def prepare(self) -> None:
        """Compile the tracker if torch has been imported, which takes seconds the first time."""
        torch = sys.modules.get("torch")
        with suppress(Exception):  # what fails is tried again, and noted, when the recording begins
            if torch is not None and _is_imported(torch) and torch.cuda.is_available():
                self._prepare(torch)

    def begin(self, session: _core.Session) -> None:
        """Push what torch's allocator holds, and record what it does from now on."""
        with _process.lock:
            self._session = session
            _process.recording = self
        self.poll()

    def poll(self) -> None:
        """Begin as soon as torch has been imported and uses the GPU; called repeatedly.

        Without a tracker, this also samples what torch holds.
        """
        self.sample()
        torch = sys.modules.get("torch")
        if not self._is_awaited or torch is None or not _is_imported(torch):
            return
        self._is_awaited = False
        try:
            if torch.cuda.is_available():
                with suppress(Exception):  # memory is recorded also without names
                    self._name_stacks(torch)
                self._prepare(torch)
                if _is_initializing(torch):
                    self._start()
                else:
                    torch.cuda._lazy_call(self._start)  # noqa: SLF001 - there is no public way
        except Exception as error:  # noqa: BLE001 - the program must continue
            self._note = _not_recorded(error)

    def sample(self, *, is_due: bool = False) -> None:
        """Sample what torch holds if there is no tracker, and as seldom as that takes long.

        Args:
            is_due: Whether to do so in any case.
        """
        with _process.lock:
            if self._samples is not None and _process.recording is self:
                self._samples.take(is_due=is_due)

    def _name_stacks(self, torch: ModuleType) -> None:
        if self._stacks and self._session is not None:
            self._tensors = TensorCategories(self._session)
            self._tensors.begin(torch)
            self._modules = ModuleNames(self._session, self._tensors.take_model)
            self._modules.begin(torch)
            self._lender = watch_backward(torch)
            if self._lender is not None:
                self._lender.set_session(self._session)

    def _prepare(self, torch: ModuleType) -> None:
        with _process.lock:
            if _process.library is None:
                try:
                    _process.library = tracker(torch)
                except TrackerUnavailableError as error:
                    _process.unavailable = f"its tracker cannot be built ({error})"

    def _start(self) -> None:
        """Start recording; called by torch once its allocator exists, or now if it does."""
        try:
            with _process.lock:
                if _process.recording is self and not self._note:
                    self._note = self._attach(sys.modules["torch"])
        except Exception as error:  # noqa: BLE001 - the program must continue
            self._note = _not_recorded(error)
            # Without the state that it began with, nothing that follows can be understood.
            if _process.observer is not None:
                _process.observer.set_session(None)

    def _attach(self, torch: ModuleType) -> str:
        if shared_with_torch():
            return ""  # gpuviz's own allocator records its events itself
        if torch.cuda.get_allocator_backend() != _NATIVE:
            return (
                "PyTorch's memory is not recorded: only its own caching allocator has a trace, not "
                f"the backend {torch.cuda.get_allocator_backend()}."
            )
        if _process.observer is None:
            _process.observer = _core.TorchObserver(_settings())
            _process.observer.set_workspaces(workspace_sizes(torch))
            self._observe_failures(torch)
        if _process.library is not None and not _process.is_attached:
            attach = _process.library.gpuviz_attach
            attach.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
            if attach(_core.TorchObserver.function(), _process.observer.address):
                _process.unavailable = "its tracker is refused"
            else:
                _process.is_attached = True
        _process.observer.set_session(self._session, stacks=self._stacks)
        _process.observer.describe(*_state(torch.cuda.memory_snapshot()))
        if not _process.is_attached:
            observer, read = _process.observer, torch.cuda.memory_snapshot
            self._samples = Samples(lambda: observer.update(*_state(read())))
        return ""

    @staticmethod
    def _observe_failures(torch: ModuleType) -> None:
        # A private function, which torch's own examples use.
        attach = getattr(torch._C, "_cuda_attach_out_of_memory_observer", None)  # noqa: SLF001
        if attach is not None:
            attach(_explain_failure)

    def end(self) -> tuple[str, ...]:
        """Stop recording, and return messages for the user, in sentences."""
        if self._lender is not None:
            self._lender.set_session(None)
        if self._modules is not None:
            self._modules.end()
        if self._tensors is not None:
            self._tensors.end()
        with _process.lock:
            if _process.recording is self:
                self.sample(is_due=True)
                if self._samples is not None:
                    self._note = (
                        f"PyTorch's memory was sampled, because {_process.unavailable}. "
                        f"{self._samples.cost} What was allocated and freed between two of them is "
                        "missing, and call stacks are unknown."
                    )
                if _process.observer is not None:
                    _process.observer.set_session(None)
                # Last, so that an end that was interrupted can be repeated.
                _process.recording = None
        return (self._note,) if self._note else ()

    def devices(self) -> list[int]:
        """Return the devices that torch has used."""
        observer = _process.observer
        return [] if observer is None or _process.recording is not self else observer.devices()


def _is_imported(torch: ModuleType) -> bool:
    """Return whether torch can be asked for CUDA: its modules are imported one by one."""
    return hasattr(getattr(torch, "cuda", None), "_lazy_call")


def _not_recorded(error: Exception) -> str:
    return f"PyTorch's memory is not recorded ({type(error).__name__}: {error})."


def call_at_first_use(begin: Callable[[], None]) -> None:
    """Call a function when torch first uses the GPU, or now if it already does.

    Args:
        begin: Called on the thread that uses the GPU; it must not raise.
    """
    torch = sys.modules["torch"]
    if hasattr(torch.cuda, "_lazy_call"):
        torch.cuda._lazy_call(begin)  # noqa: SLF001 - there is no public way


def _is_initializing(torch: ModuleType) -> bool:
    """Return whether this thread is in such a call: torch then holds the lock of the next one."""
    return hasattr(getattr(torch.cuda, "_tls", None), "is_initializing")


def _settings() -> _core.AllocatorSettings:
    """Return what determines the sizes of blocks; torch itself rejects errors."""
    chosen = _core.AllocatorSettings.parse("")
    for item in _SEPARATOR.split(torch_settings()):
        with suppress(ValueError):
            chosen = chosen.updated(item)
    return chosen


Segments = list[tuple[int, int, int, int, int, int, bool, bool]]
Blocks = list[tuple[int, int, int, int, bool]]


def _state(snapshot: list[dict[str, Any]]) -> tuple[Segments, Blocks]:
    """Return the segments and the live blocks of ``torch.cuda.memory_snapshot()``."""
    segments: Segments = []
    blocks: Blocks = []
    for segment in snapshot:
        device, address = segment["device"], segment["address"]
        pool = segment.get("segment_pool_id", (0, 0))
        segments.append(
            (
                device,
                address,
                segment["total_size"],
                segment["stream"],
                *pool,
                segment["segment_type"] == "large",
                bool(segment.get("is_expandable")),
            )
        )
        at = address
        for block in segment["blocks"]:
            at = block.get("address", at)
            if block["state"] != "inactive":
                requested = block.get("requested_size", block["size"])
                blocks.append((device, at, block["size"], requested, block["state"] == _IN_USE))
            at += block["size"]
    return segments, blocks


def _explain_failure(device: int, segment_size: int, allowed: int, free: int) -> None:
    """Print what the recording knows; torch's exception does not exist yet."""
    recording = _process.recording
    if recording is None:
        return
    with suppress(Exception):
        recording.sample(is_due=True)
        total = total_memory(device)
        details = {
            "segment_size": segment_size,
            "limit": NOT_LIMITED if allowed >= total else allowed,
            "device_free": free,
            "device_total": total,
        }
        report = FailureReport(device, threading.get_native_id(), None, details)
        explanation = explanation_of(report)
        if explanation:
            log(logging.WARNING, explanation)
