"""PyTorch on gpuviz's caching allocator; the only file that imports torch."""

import ctypes
import os
import threading
import warnings
from types import ModuleType

from gpuviz import _core
from gpuviz.allocator.memory import SETTINGS_VARIABLE
from gpuviz.allocator.settings import TORCH_VARIABLES
from gpuviz.errors import DeviceUnavailableError, InstallationError
from gpuviz.frameworks.shared_pool import import_library, shared_pool

_NATIVE = "backend:native"
_GRAPH = (
    "torch cannot capture a CUDA graph on gpuviz's caching allocator, which keeps no memory for "
    "it: others would get the memory that the graph writes to. Use torch's own allocator, without "
    "gpuviz.allocators.torch.install() or --shared-pool."
)
_POOL = (
    "torch allocates for a private pool on gpuviz's caching allocator, which has none for torch: "
    "the memory comes from the shared pool. Use torch's own allocator for private pools, without "
    "gpuviz.allocators.torch.install() or --shared-pool."
)
_TOO_LATE = (
    "torch has already used CUDA, and cannot change its allocator any more. Call "
    "gpuviz.allocators.torch.install() before the first CUDA tensor, right after `import torch`."
)


class _Process:
    lock = threading.Lock()
    is_installed = False


def install() -> None:
    """Let torch allocate GPU memory from gpuviz's caching allocator, as CuPy does.

    Call it before torch first uses CUDA. It holds until the process ends, and does nothing the
    second time. Warns with ``RuntimeWarning`` of torch's allocator settings, which lose their
    effect, and later when torch allocates for a private pool. From then on, torch cannot capture a
    CUDA graph, which would get no memory of its own: that raises `InstallationError`.

    Raises:
        InstallationError: torch has already used CUDA, or ``PYTORCH_CUDA_ALLOC_CONF`` chooses
            another backend than ``native``.
        DeviceUnavailableError: torch is missing or built without CUDA, or a usable driver is
            missing.
    """
    with _Process.lock:
        if not _Process.is_installed:
            _install()
            _Process.is_installed = True
            _warn_of_settings()


def is_installed() -> bool:
    """Return whether torch allocates from gpuviz's caching allocator."""
    return _Process.is_installed


def _install() -> None:
    _check_backend()
    torch = import_library("torch", "torch")
    if torch.version.cuda is None:
        raise DeviceUnavailableError(f"torch {torch.__version__} is built without CUDA.")
    shared_pool().serve_torch()
    memory = torch.cuda.memory
    library = str(_core.__file__)
    allocator = memory.CUDAPluggableAllocator(library, "gpuviz_torch_malloc", "gpuviz_torch_free")
    functions, setters = ctypes.CDLL(library), allocator.allocator()
    setters.set_record_stream_fn(_address(functions.gpuviz_torch_record_stream))
    setters.set_reset_fn(_address(functions.gpuviz_torch_empty_cache))
    setters.set_memory_fraction_fn(_address(functions.gpuviz_torch_set_memory_fraction))
    if hasattr(setters, "set_begin_allocate_to_pool"):
        setters.set_begin_allocate_to_pool(_address(_begin_pool))
    try:
        memory.change_current_allocator(allocator)
    except RuntimeError as error:
        raise InstallationError(_TOO_LATE) from error
    _refuse_graphs(torch)


def _refuse_graphs(torch: ModuleType) -> None:
    """Let captures of graphs fail before they change the current stream."""

    def refuse(*_: object, **__: object) -> None:
        raise InstallationError(_GRAPH)

    for kind, method in (("graph", "__enter__"), ("CUDAGraph", "capture_begin")):
        owner = getattr(torch.cuda, kind, None)
        if owner is not None:
            setattr(owner, method, refuse)


def _warn_of_pool(_device: int, _first: int, _second: int, _filter: int | None) -> None:
    """Called by torch when memory shall come from a private pool."""
    warnings.warn(_POOL, RuntimeWarning, stacklevel=2)


# The device, both numbers of torch's pool by value, and a filter of streams by reference.
_BeginPool = ctypes.CFUNCTYPE(
    None, ctypes.c_int, ctypes.c_ulonglong, ctypes.c_ulonglong, ctypes.c_void_p
)
_begin_pool = _BeginPool(_warn_of_pool)


def _check_backend() -> None:
    for variable in TORCH_VARIABLES:
        items = os.environ.get(variable, "").replace(" ", "").split(",")
        chosen = next((item for item in items if item.startswith("backend:")), _NATIVE)
        if chosen != _NATIVE:
            raise InstallationError(
                f"{variable} contains {chosen}, with which torch accepts no other allocator. "
                "Remove it before the program starts."
            )


def _warn_of_settings() -> None:
    for variable in TORCH_VARIABLES:
        if os.environ.get(variable):
            warnings.warn(
                f"{variable}={os.environ[variable]} has no effect on gpuviz's caching allocator; "
                f"its settings are in {SETTINGS_VARIABLE}.",
                RuntimeWarning,
                stacklevel=3,
            )


def _address(function: object) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert address is not None  # noqa: S101
    return address
