"""Text form of the allocator's settings."""

import os

from gpuviz import _core

MIB = 1 << 20
# The settings of torch's own allocator. Both names are in use since torch 2.10.
TORCH_VARIABLES = ("PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF")


def settings_text(settings: _core.AllocatorSettings) -> str:
    """Return the options that differ from their defaults, as ``key:value,...``.

    Parsing the text returns equal settings.
    """
    defaults = _core.AllocatorSettings.parse("")
    options = {
        "large_segment_size_mb": settings.large_segment_size // MIB,
        "expandable_segments": settings.expandable_segments,
        "max_split_size_mb": settings.max_split_size // MIB,
        "max_non_split_rounding_mb": settings.max_non_split_rounding_size // MIB,
        "garbage_collection_threshold": settings.garbage_collection_threshold,
        "per_process_memory_fraction": settings.per_process_memory_fraction,
        "roundup_power2_divisions": _divisions(settings),
        "pinned_max_round_threshold_mb": settings.pinned_max_round_threshold // MIB,
        "pinned_max_cached_size_mb": settings.pinned_max_cached_size // MIB,
    }
    unset = {
        "large_segment_size_mb": defaults.large_segment_size // MIB,
        "expandable_segments": False,
        "max_split_size_mb": defaults.max_split_size // MIB,
        # Equals the segment size unless it is set.
        "max_non_split_rounding_mb": settings.large_segment_size // MIB,
        "garbage_collection_threshold": 0.0,
        "per_process_memory_fraction": None,
        "roundup_power2_divisions": "0",
        "pinned_max_round_threshold_mb": defaults.pinned_max_round_threshold // MIB,
        "pinned_max_cached_size_mb": defaults.pinned_max_cached_size // MIB,
    }
    named = [f"{key}:{value}" for key, value in options.items() if value != unset[key]]
    return ",".join(named)


def _divisions(settings: _core.AllocatorSettings) -> str:
    divisions = settings.roundup_power2_divisions
    if len(set(divisions.values())) == 1:
        return str(next(iter(divisions.values())))
    return "[" + ",".join(f"{size_mb}:{count}" for size_mb, count in divisions.items()) + "]"


def torch_settings() -> str:
    """Return the settings of torch's own allocator in this process, as the program chose them."""
    return next((os.environ[name] for name in TORCH_VARIABLES if os.environ.get(name)), "")
