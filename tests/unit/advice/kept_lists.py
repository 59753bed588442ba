"""Programs that keep arrays in lists."""

from gpuviz.advice.findings import findings
from tests.unit.advice.timed_programs import timed

MIB = 1 << 20
ROUNDS, SIZE = 10, 8 * MIB


class Paths:
    """Arrays of a simulation, and what is computed of each."""

    def __init__(self, gpu):
        self.gpu, self.state = gpu, gpu.empty(MIB)

    def path(self):
        path = self.gpu.empty(SIZE)
        self.gpu.launch("make", duration=1e-4, writes=[path])
        self.gpu.launch("step", duration=1e-4, reads=[path, self.state], writes=[self.state])
        return path

    def mean(self, path, *others, size=MIB // 2, name="mean"):
        result = self.gpu.empty(size)
        self.gpu.launch(name, duration=1e-5, reads=[path, *others], writes=[result])
        return result

    def paths(self):
        for _ in range(ROUNDS):
            yield self.path()

    def combine(self, arrays):
        self.gpu.launch("all", duration=1e-5, reads=arrays, writes=[self.state])


def waiting(program):
    return [each for each in findings(timed(program), small=True) if each.rule == "R63"]
