"""Graphs with a temporary, and recordings of programs that capture them."""

import gpuviz

MIB = 1 << 20
SIZE = 4 * MIB
LONG_S = 1.0


def reserved(gpu):
    return gpu.memory_stats()["reserved_bytes.all.current"]


def captured(gpu, stream, pool=None, duration=1e-6):
    """Return a graph with a freed temporary, the temporary's address, and the result."""
    with gpuviz.graph(stream, pool) as graph:
        temporary, result = gpu.empty(SIZE), gpu.empty(SIZE)
        gpu.launch("make", writes=[temporary], duration=duration)
        gpu.launch("use", reads=[temporary], writes=[result], duration=duration)
    return graph, temporary.ptr, result


def recorded(gpu, program):
    with gpuviz.record(device=gpu) as recorder:
        program()
    return recorder.recording
