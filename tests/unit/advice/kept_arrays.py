"""Programs that keep arrays until the peak."""

from tests.unit.advice.programs import MIB


def keeps(gpu):
    image = gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[image])
    flat = gpu.empty(16 * MIB)
    gpu.launch("flatten", duration=1e-4, reads=[image], writes=[flat])
    large = gpu.empty(64 * MIB)
    gpu.launch("enlarge", duration=1e-4, reads=[flat], writes=[large])


def deletes(gpu):
    image = gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[image])
    flat = gpu.empty(16 * MIB)
    gpu.launch("flatten", duration=1e-4, reads=[image], writes=[flat])
    del image
    large = gpu.empty(64 * MIB)
    gpu.launch("enlarge", duration=1e-4, reads=[flat], writes=[large])


def made(gpu):
    image = gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[image])
    return image
