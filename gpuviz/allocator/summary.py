"""Text table of ``torch.cuda.memory_summary`` from memory statistics."""

from collections.abc import Callable, Mapping

WIDTH = 75
_COLUMNS = ("current", "peak", "allocated", "freed")
_POOLS = (("all", None), ("large_pool", "from large pool"), ("small_pool", "from small pool"))

# (title, key, whether in bytes, whether it has one line for each pool)
_METRICS = (
    ("Allocated memory", "allocated_bytes", True, True),
    ("Active memory", "active_bytes", True, True),
    ("Requested memory", "requested_bytes", True, True),
    ("GPU reserved memory", "reserved_bytes", True, True),
    ("Non-releasable memory", "inactive_split_bytes", True, True),
    ("Allocations", "allocation", False, True),
    ("Active allocs", "active", False, True),
    ("GPU reserved segments", "segment", False, True),
    ("Non-releasable allocs", "inactive_split", False, True),
    ("Oversize allocations", "oversize_allocations", False, False),
    ("Oversize GPU segments", "oversize_segments", False, False),
)

# torch changes to the next unit at these values, not at the unit itself.
_BYTES_SWITCH = 768 * 1024
_COUNT_SWITCH = 750_000


def memory_summary_table(
    stats: Mapping[str, int],
    device: int,
    *,
    abbreviated: bool = False,
) -> str:
    """Return statistics as a table, 77 columns wide with its frame.

    Args:
        stats: Under the keys of ``torch.cuda.memory_stats``; missing ones count as 0.
        device: The ordinal to name in the title.
        abbreviated: Leave out the lines for each pool.
    """
    ooms, retries = stats.get("num_ooms", 0), stats.get("num_alloc_retries", 0)
    half = WIDTH // 2
    lines = [
        "=" * WIDTH,
        f"gpuviz CUDA memory summary, device ID {device}".center(WIDTH),
        "-" * WIDTH,
        f"CUDA OOMs: {ooms}".center(half - 1)
        + "|"
        + f"cudaMalloc retries: {retries}".center(WIDTH - half),
        "=" * WIDTH,
        "        Metric         | Cur Usage  | Peak Usage | Tot Alloc  | Tot Freed  ",
    ]
    for title, key, in_bytes, has_pools in _METRICS:
        scale = _scaled_bytes if in_bytes else _scaled_count
        lines.append("-" * WIDTH)
        if not has_pools:
            lines.append(_row(title, stats, key, scale))
            continue
        for pool, pool_title in _POOLS[:1] if abbreviated else _POOLS:
            lines.append(_row(pool_title or title, stats, f"{key}.{pool}", scale))
    lines.append("=" * WIDTH)
    return "\n".join(f"|{line}|" for line in lines) + "\n"


def _row(title: str, stats: Mapping[str, int], key: str, scale: Callable[[int, int], str]) -> str:
    values = [stats.get(f"{key}.{column}", 0) for column in _COLUMNS]
    name = title.rjust(21) if title.startswith("from ") else title.ljust(21)
    return f" {name} | " + " | ".join(scale(value, values[0]).rjust(10) for value in values) + " "


def _scaled_bytes(value: int, current: int) -> str:
    return _scaled(value, current, _BYTES_SWITCH, 1024, ("B  ", "KiB", "MiB", "GiB", "TiB", "PiB"))


def _scaled_count(value: int, current: int) -> str:
    return _scaled(value, current, _COUNT_SWITCH, 1000, (" ", "K", "M"))


def _scaled(value: int, current: int, switch: int, step: int, units: tuple[str, ...]) -> str:
    unit = units[0]
    for larger in units[1:]:
        if current < switch:
            break
        unit = larger
        current //= step
        value //= step
    return f"{value} {unit}"
