import shutil
import subprocess
from pathlib import Path

import pytest

NATIVE = Path(__file__).parents[2] / "gpuviz" / "native"
SOURCES = (
    "testing/allocator_threads.cpp",
    "device/offline_device.cpp",
    "device/simulated_device.cpp",
)


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
