"""CuPy's default pool for a program whose arrays come from gpuviz's allocator instead."""

from functools import cache
from typing import Any

from gpuviz.allocator.memory import caching_allocator, caching_allocators, empty_cache_of
from gpuviz.frameworks.cupy_current import current_device, import_cupy

_USED, _TOTAL = "allocated_bytes.all.current", "reserved_bytes.all.current"


class DefaultPool:
    """What `cupy.get_default_memory_pool` returns from `begin` to `end`.

    Programs release what the pool caches, ask how much it uses, and limit it: that concerns their
    arrays, wherever these come from. A limit may be older, since `gpuviz run` records from the
    first allocation on. A program that has asked for the pool before has CuPy's own.
    """

    def __init__(self) -> None:
        self._cupy: Any = import_cupy()
        self._own = getattr(self._cupy, "_default_memory_pool", None)
        self._pool: Any = None

    def begin(self) -> None:
        """Let the pool speak for gpuviz's allocator, too."""
        if type(self._own) is self._cupy.cuda.MemoryPool:
            self._pool = _kind()(self._own)
            self._cupy._default_memory_pool = self._pool  # noqa: SLF001
            for device in caching_allocators():
                self.limit(device)

    def limit(self, device: int) -> None:
        """Give gpuviz's allocator of a device the limit that the program has set so far."""
        if self._pool is None or self._pool.is_over:
            return
        if device == current_device():
            self._pool.apply_limit(device)
            return
        with self._cupy.cuda.Device(device):
            self._pool.apply_limit(device)

    def end(self) -> None:
        """Let CuPy's pool be as before; one that the program has kept passes all on to it."""
        if self._pool is None:
            return
        self._pool.is_over = True
        for device, fraction in self._pool.fractions.items():
            caching_allocator(device).set_memory_fraction(fraction)
        if self._cupy._default_memory_pool is self._pool:  # noqa: SLF001
            self._cupy._default_memory_pool = self._own  # noqa: SLF001


def own_default_pool() -> Any:
    """Return CuPy's own default pool."""
    pool = import_cupy().get_default_memory_pool()
    return getattr(pool, "own", pool)


class _BothPools:
    """CuPy's pool, together with gpuviz's allocator of the current device."""

    def __init__(self, own: Any) -> None:
        super().__init__()
        self.own = own
        self.is_over = False
        self.fractions: dict[int, float] = {}  # by device, before the program set a limit

    def _bytes(self, name: str) -> int:
        allocator = None if self.is_over else caching_allocators().get(current_device())
        return 0 if allocator is None else allocator.memory_stats().get(name, 0)

    def malloc(self, size: int) -> Any:
        return self.own.malloc(size)

    def free_all_blocks(self, stream: Any = None) -> None:
        self.own.free_all_blocks(stream)
        # gpuviz's allocator does not release the memory of one stream only.
        if stream is None and not self.is_over:
            empty_cache_of(current_device())

    def free_all_free(self) -> None:
        self.free_all_blocks()

    def n_free_blocks(self) -> Any:
        return self.own.n_free_blocks()

    def used_bytes(self) -> int:
        return int(self.own.used_bytes()) + self._bytes(_USED)

    def free_bytes(self) -> int:
        return self.total_bytes() - self.used_bytes()

    def total_bytes(self) -> int:
        return int(self.own.total_bytes()) + self._bytes(_TOTAL)

    def set_limit(self, size: int | None = None, fraction: float | None = None) -> None:
        self.own.set_limit(size, fraction)
        if not self.is_over:
            self._set_limit_of(current_device())

    def apply_limit(self, device: int) -> None:
        """Limit gpuviz's allocator of the current device as CuPy's pool is, if that is."""
        if self.own.get_limit():
            self._set_limit_of(device)

    def _set_limit_of(self, device: int) -> None:
        allocator = caching_allocator(device)
        self.fractions.setdefault(device, allocator.memory_fraction)
        limit, (_, most) = self.own.get_limit(), allocator.device.memory_info()
        allocator.set_memory_fraction(min(limit / most, 1.0) if limit else 1.0)

    def get_limit(self) -> int:
        return int(self.own.get_limit())


@cache
def _kind() -> Any:
    return type("DefaultMemoryPool", (_BothPools, import_cupy().cuda.MemoryPool), {})
