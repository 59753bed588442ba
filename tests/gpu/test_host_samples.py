"""Work of the host between launches is named, for CuPy and for torch."""

import gc
import json
import pickle
import threading
import time
from collections import Counter

import numpy as np
import pytest

import gpuviz
from gpuviz.analysis.host_work import host_work

pytestmark = pytest.mark.gpu

REPEATED = 20
# A shorter gap may fall between two samples.
LEAST_NS = 2_000_000
NAMED = 0.95

VALUES = np.random.default_rng(7).random(500_000)
OBJECTS = {str(number): list(range(20)) for number in range(4000)}
LOCK = threading.Lock()


def sorting():
    np.sort(VALUES)


def pickling():
    pickle.dumps(OBJECTS)


def encoding():
    json.dumps(OBJECTS)


def sleeping():
    time.sleep(0.005)


def collecting():
    gc.collect()


def locking():
    with LOCK:
        pass


def counting():
    for _ in range(200_000):
        pass


def yielding(until=0.02):
    end = time.monotonic() + until
    while time.monotonic() < end:
        time.sleep(0)


WORKS = {
    sorting: "working",
    pickling: "working",
    encoding: "working",
    sleeping: "waiting",
    collecting: "collection",
    locking: "waiting",
    counting: "working",
    yielding: "gil",
}


@pytest.fixture(params=["cupy", "torch"])
def library(request):
    """Return a function that launches a kernel, and one that waits for it."""
    if request.param == "cupy":
        import cupy as cp

        x = cp.ones(1 << 16, "f4")
        return lambda: cp.add(x, 1, out=x), cp.cuda.Device().synchronize
    torch = pytest.importorskip("torch")
    y = torch.ones(1 << 16, device="cuda")
    return lambda: y.add_(1), torch.cuda.synchronize


@pytest.fixture
def others():
    """Return events: to hold the lock for a while, that it is held, and to keep the GIL busy."""
    hold, held, busy, stop = (threading.Event() for _ in range(4))

    def holder():
        while not stop.is_set():
            if hold.wait(0.01):
                hold.clear()
                with LOCK:
                    held.set()
                    time.sleep(0.005)

    def loader():
        while not stop.is_set():
            if busy.wait(0.01):
                sum(range(1000))

    threads = [threading.Thread(target=each, name=each.__name__) for each in (holder, loader)]
    for thread in threads:
        thread.start()
    yield hold, held, busy
    stop.set()
    for thread in threads:
        thread.join()


def is_of(recording, found, work):
    frames = recording.call_stacks.frames(found.stack)
    return found.kind == WORKS[work] and any(each.name == work.__name__ for each in frames)


def test_what_the_host_did_in_gaps_is_named(library, others):
    launch, synchronize = library
    hold, held, busy = others
    launch()
    synchronize()
    gaps = []
    with gpuviz.record() as recorder:
        for work in list(WORKS) * REPEATED:
            if work is locking:
                held.clear()
                hold.set()
                held.wait()
            if work is yielding:
                busy.set()
            launch()
            synchronize()
            began = time.monotonic_ns()
            work()
            gaps.append((work, began, time.monotonic_ns()))
            launch()
            busy.clear()
        synchronize()

    recording = recorder.recording
    start = recording.manifest.start_monotonic_ns
    found = host_work(recording, 0)
    total, named = Counter(), Counter()
    for work, begin, end in gaps:
        if end - begin < LEAST_NS:
            continue
        inside = np.minimum(found.end, end - start) - np.maximum(found.begin, begin - start)
        of_work = [is_of(recording, each, work) for each in found.works]
        pieces = (inside > 0) & np.array(of_work)[found.work]
        total[work.__name__] += 1
        named[work.__name__] += bool(inside[pieces].sum() > (end - begin) / 2)
    assert sum(named.values()) >= NAMED * sum(total.values()), (named, total)
