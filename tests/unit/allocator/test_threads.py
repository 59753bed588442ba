import random
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from gpuviz import _core
from tests.unit.allocator.invariants import check

NATIVE = Path(__file__).parents[3] / "gpuviz" / "native"
SOURCES = (
    "testing/allocator_threads.cpp",
    "device/offline_device.cpp",
    "device/simulated_device.cpp",
)


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


@pytest.mark.parametrize("sanitizer", ["thread", "address,undefined"])
def test_threads_leave_nothing_for_a_sanitizer_to_find(tmp_path, sanitizer):
    compiler = shutil.which("c++")
    assert compiler is not None, "building gpuviz needs a C++ compiler"
    program = tmp_path / "allocator_threads"
    sources = [NATIVE / name for name in SOURCES] + sorted(NATIVE.glob("allocator/*.cpp"))
    together = tmp_path / "together.cpp"  # compiles in a third of the time
    together.write_text("".join(f'#include "{source}"\n' for source in sources))
    flags = ["-std=gnu++20", "-O1", "-g", f"-fsanitize={sanitizer}", "-fno-sanitize-recover=all"]

    subprocess.run(
        [compiler, *flags, f"-I{NATIVE}", together, "-pthread", "-o", program],
        check=True,
    )
    result = subprocess.run([program], capture_output=True, text=True, check=False)

    assert (result.returncode, result.stdout) == (0, "0 bytes in use, 0 active\n"), result.stderr
