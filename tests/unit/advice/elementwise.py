"""Elementwise operations on a simulated GPU, and the chains that are found."""

from gpuviz.advice.findings import findings
from tests.unit.advice.programs import (
    MIB,
    threads,
    without_frames,
)

SIZE = 64 * MIB
# Of a kernel that waits for memory, in bytes per second.
RATE = 1.5e12


def apply(gpu, function, *reads, size=SIZE):
    """Return the result of an elementwise function, whose kernel waits for memory."""
    target = gpu.empty(size)
    kinds = "_".join(["float32"] * (1 + len(reads)))
    gpu.launch(
        f"cupy_{function}__{kinds}" if function else "expression",
        duration=max(sum(each.nbytes for each in reads) + size, MIB) / RATE,
        reads=reads,
        writes=[target],
        **threads(size // 4),
    )
    return target


def norm(gpu, a, b, c):
    return apply(gpu, "sqrt", apply(gpu, "add", apply(gpu, "multiply", a, b), c))


def fused(gpu, a, b, c):
    return apply(gpu, "", a, b, c)


def total(gpu, array):
    """Return a reduction of an array, whose kernel waits for memory."""
    result = gpu.empty(512)
    gpu.launch("cupy_sum", duration=array.nbytes / RATE, reads=[array], writes=[result])
    return result


def summed(gpu, a, b, _):
    difference = apply(gpu, "subtract", a, b)
    return total(gpu, apply(gpu, "square", difference))


def update(gpu, target, other):
    """Add an array to another one in place."""
    gpu.launch(
        "cupy_add__float32_float32_float32",
        duration=(2 * target.nbytes + other.nbytes) / RATE,
        reads=[target, other],
        writes=[target],
        **threads(target.nbytes // 4),
    )


def computes(evaluate, *, rounds=10):
    """Return a program that evaluates an expression."""

    def program(gpu):
        a, b, c = (gpu.empty(SIZE) for _ in "abc")
        gpu.launch("make", duration=1e-4, writes=[a, b, c])
        for _ in range(rounds):
            result = evaluate(gpu, a, b, c)
            gpu.launch("reduce", duration=5e-5, reads=[a])
        del result

    return program


def chains(recording):
    whole = recording
    for function in ("apply", "total", "update"):
        whole = without_frames(whole, function)
    return [each for each in findings(whole, small=True) if each.rule == "R08"]
