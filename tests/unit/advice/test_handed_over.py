"""R03: arrays that one thread makes for another one, as through a queue."""

from collections import deque
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pytest

from tests.unit.advice.programs import MIB, found, saved

BATCHES = 20


def trains(gpu, *, ahead, threads=True):
    """Use batches of which another thread has as many ready as a queue takes, or all at first."""
    weights = gpu.empty(16 * MIB)
    gpu.fill(weights)

    def uploaded():
        batch = gpu.empty(16 * MIB)
        gpu.copy_to_device(batch)
        return batch

    with ThreadPoolExecutor(1) as other:
        made = (other.submit(uploaded).result() if threads else uploaded() for _ in range(BATCHES))
        ready, rest = deque[object](), iter(made)
        for _ in range(BATCHES):
            for _, batch in zip(range(ahead - len(ready)), rest, strict=False):
                ready.append(batch)
                del batch
            gpu.launch("train", duration=1e-4, reads=[ready[0], weights], writes=[weights])
            gpu.synchronize()
            ready.popleft()


def test_a_queue_without_a_limit_gets_one():
    (finding,) = found(partial(trains, ahead=BATCHES), "R03")

    limited = partial(trains, ahead=3)
    assert "let at most one wait for " in finding.change
    assert finding.change.endswith("in another thread (`queue.Queue(maxsize=1)`).")
    assert finding.certainty == "possible"
    assert finding.saved_bytes == saved(partial(trains, ahead=BATCHES), limited) == 17 * 16 * MIB


@pytest.mark.parametrize("ahead", [2, 3, 8])
def test_a_queue_with_a_limit_keeps_what_it_makes_ahead(ahead):
    assert found(partial(trains, ahead=ahead), "R03") == []


def test_what_the_same_thread_uploads_ahead_can_be_uploaded_later():
    (finding,) = found(partial(trains, ahead=8, threads=False), "R03")

    assert "allocate and fill it right before" in finding.change
    assert finding.saved_bytes == 7 * 16 * MIB
