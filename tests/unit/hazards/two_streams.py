"""Programs of two streams of a simulated GPU, for the hazards between them."""

import pyarrow as pa

import gpuviz
from gpuviz.data.tables import DICTIONARIES

SIZE = 1 << 20
LONG_S = 1e-3


class Program:
    """A simulated GPU with two non-blocking streams, whose kernels run concurrently."""

    def __init__(self, *, non_blocking=True):
        self.gpu = gpuviz.SimulatedGPU(real_time=False)
        self.recorder = gpuviz.record(device=self.gpu)
        self.recorder.start()
        self.s = self.gpu.Stream(non_blocking=non_blocking)
        self.t = self.gpu.Stream(non_blocking=non_blocking)

    def empty(self, stream, size=SIZE):
        with stream:
            return self.gpu.empty(size)

    def launch(self, stream, name="kernel", reads=(), writes=()):
        with stream:
            self.gpu.launch(name, reads=reads, writes=writes, duration=LONG_S, share=0.1)

    def recording(self):
        self.gpu.synchronize()
        self.recorder.stop()
        return self.recorder.recording

    def found(self):
        """Return kind, tier, and the names of both operations of each hazard."""
        return [
            (each.kind, each.tier, each.first.name, each.second.name)
            for each in self.recording().hazards()
        ]


RAW = ("RAW", "probable", "write", "read")


def write_then_read(program, between):
    a = program.empty(program.s)
    program.launch(program.s, "write", writes=[a])
    between(program)
    program.launch(program.t, "read", reads=[a])
    program.gpu.synchronize()


def with_words(recording, name, column, codes):
    table = recording.tables[name]
    words = pa.array(DICTIONARIES[name, column])
    values = pa.DictionaryArray.from_arrays(pa.array(codes, pa.int8()), words)
    changed = table.set_column(table.schema.get_field_index(column), column, values)
    return type(recording)({**recording.tables, name: changed}, recording.manifest)


def freed_and_reused(program, before_free):
    a = program.empty(program.s)
    program.launch(program.t, "use", reads=[a])
    before_free(program, a)
    del a
    b = program.empty(program.s)
    program.launch(program.s, "next", writes=[b])
    program.gpu.synchronize()


def captured(program, stream, *kernels):
    stream.begin_capture()
    for name, reads, writes in kernels:
        program.launch(stream, name, reads=reads, writes=writes)
    return stream.end_capture()
