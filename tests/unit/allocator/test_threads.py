import random
import threading

from gpuviz import _core
from tests.unit.allocator.invariants import check


def test_threads_share_an_allocator():
    device = _core.SimulatedDevice(1 << 30)
    allocator = _core.CachingAllocator(device)
    start = threading.Barrier(4)
    failures = []

    def use(seed):
        generator = random.Random(seed)
        live = []
        start.wait()
        for _ in range(3000):
            if live and generator.random() < 0.5:
                allocator.free(live.pop(generator.randrange(len(live))))
            else:
                live.append(allocator.allocate(generator.randrange(1, 1 << 20), seed % 2))
        failures.extend(address for address in live if not allocator.owns(address))
        for address in live:
            allocator.free(address)

    threads = [threading.Thread(target=use, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert failures == []
    check(allocator, device)
    assert allocator.memory_stats()["allocated_bytes.all.current"] == 0
