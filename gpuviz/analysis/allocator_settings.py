"""Settings of a recording's allocator, and the lines that choose others."""

import re
from collections.abc import Iterable
from contextlib import suppress

from gpuviz import _core
from gpuviz.data.escaping import as_unicode
from gpuviz.data.manifest import TORCH_ALLOCATOR, Manifest

# In place of settings: CuPy's own pool, and the driver's allocator.
CUPY = "cupy"
ASYNC = "cudaMallocAsync"
EXPANDABLE = "expandable_segments"
# A comma outside the brackets of a list.
_SEPARATOR = re.compile(r",(?![^\[]*\])")


def known_settings(manifest: Manifest) -> list[str]:
    """Return the items of the allocator's settings, without those that gpuviz does not know."""
    known: list[str] = []
    for item in _SEPARATOR.split(as_unicode(manifest.settings)):
        if are_valid([*known, item]):
            known.append(item)
    return [item for item in known if item]


def are_valid(items: Iterable[str]) -> bool:
    """Return whether an allocator can have these items as its settings together."""
    with suppress(ValueError):
        _core.AllocatorSettings.parse(",".join(items))
        return True
    return False


def allocator_settings(manifest: Manifest) -> _core.AllocatorSettings:
    """Return the allocator's settings, without those that gpuviz does not know."""
    return _core.AllocatorSettings.parse(",".join(known_settings(manifest)))


def line_to_use(manifest: Manifest, settings: str) -> str:
    """Return what to write at the start of the recorded program to get an allocator.

    Args:
        manifest: That of the recording, which tells which library allocates.
        settings: Those of torch's allocator, or `CUPY` or `ASYNC`.
    """
    is_torch = manifest.allocator_name == TORCH_ALLOCATOR
    if is_torch and settings != CUPY:
        backend = f"backend:{ASYNC}"
        return f"PYTORCH_CUDA_ALLOC_CONF={backend if settings == ASYNC else settings}"
    if settings in (CUPY, ASYNC):
        pool = "MemoryPool" if settings == CUPY else "MemoryAsyncPool"
        return f"cupy.cuda.set_allocator(cupy.cuda.{pool}().malloc)"
    chosen = f'gpuviz.set_allocator_settings("{settings}")'
    if manifest.allocator == "caching":
        return chosen
    installed = "cupy.cuda.set_allocator(gpuviz.malloc)"
    return f"{chosen}; {installed}" if settings else installed
