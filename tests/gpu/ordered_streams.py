"""Streams of the programs without a hazard."""

from typing import Any

import cupy as cp

N = 1 << 20


def wait() -> None:
    cp.cuda.Device().synchronize()


def streams(count: int) -> list[Any]:
    """Return streams without implicit order; what was launched before is complete."""
    wait()
    return [cp.cuda.Stream(non_blocking=True) for _ in range(count)]
