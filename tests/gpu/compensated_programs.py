"""Programs unrecorded, recorded and compensated: ``python -m tests.gpu.compensated_programs``.

Each runs in a process of its own, where steps with and without a recording take turns. The first
steps of a recording are not counted, because CUPTI then meets each kernel anew. Prints the median
time of a step, the same of the compensated recording and its error, and the share of the time in
which the GPU was busy: the recorded work in the time of the unrecorded program, and by how many
points that of the compensated recording is off. The exit code is 1 if an error is above 5 %, or the
share off by more than 3 points.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

import gpuviz
from gpuviz.analysis.intervals import Intervals
from gpuviz.recording import Recording

ROUNDS, SECONDS = 5, 0.15
FIRST, FEWEST = 3, 5
MOST_ERROR, MOST_POINTS = 0.05, 3.0
MEASURED = "measured steps"

Step = Callable[[], object]


def small_kernels() -> Step:
    import cupy as cp

    x = cp.ones(1000, cp.float32)

    def step() -> None:
        y = x
        for _ in range(200):
            y = y * 1.01 + 0.5

    return step


def allocations() -> Step:
    import cupy as cp

    def step() -> None:
        for _ in range(100):
            a, b = cp.empty(1000), cp.empty(5000)
            a.fill(1)
            b.fill(2)
            a.sum()

    return step


def conjugate_gradient() -> Step:
    import cupy as cp

    matrix = cp.random.rand(4096, 4096, dtype=cp.float32)
    matrix = matrix @ matrix.T + 4096 * cp.eye(4096, dtype=cp.float32)
    right = cp.random.rand(4096, dtype=cp.float32)

    def step() -> None:
        x, residual = cp.zeros_like(right), right.copy()
        direction, square = residual.copy(), residual @ residual
        for _ in range(20):
            product = matrix @ direction
            length = square / (direction @ product)
            x = x + length * direction
            residual = residual - length * product
            before, square = square, residual @ residual
            if float(square) < 0:
                break
            direction = residual + (square / before) * direction

    return step


def uploads() -> Step:
    import cupy as cp

    x, row = cp.ones((256, 256), cp.float32), np.arange(256, dtype=np.float32)

    def step() -> None:
        for _ in range(60):
            float((x * cp.asarray(row) + cp.asarray(row)).sum())

    return step


def graph_launches() -> Step:
    import cupy as cp

    unsorted = np.random.default_rng(7).random(4_000)
    x, stream = cp.ones(1 << 12, cp.float32), cp.cuda.Stream()
    cp.sqrt(x, out=x)
    stream.begin_capture()
    with stream:
        for _ in range(80):
            cp.sqrt(x, out=x)
    graph = stream.end_capture()

    def step() -> None:
        for _ in range(10):
            graph.launch(stream)
            np.sort(unsorted)

    return step


def large_kernels() -> Step:
    import cupy as cp

    x = cp.ones(1 << 24, cp.float32)

    def step() -> None:
        y = x
        for _ in range(50):
            y = cp.sqrt(y * 1.01 + 0.5)

    return step


def perceptron() -> Step:
    import torch

    layers = [each for _ in range(6) for each in (torch.nn.Linear(2048, 2048), torch.nn.GELU())]
    model = torch.nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(2048, 2048, device="cuda")

    def step() -> None:
        for _ in range(5):
            loss = model(x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss.item()

    return step


def resnet() -> Step:
    import torch
    import torchvision

    model = torchvision.models.resnet50().cuda().train()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    x = torch.randn(32, 3, 224, 224, device="cuda")
    y = torch.randint(0, 1000, (32,), device="cuda")

    def step() -> None:
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        loss.item()

    return step


def generation() -> Step:
    import torch
    import transformers

    shape = transformers.GPT2Config(n_layer=8, n_head=12, n_embd=768, n_positions=512)
    model = transformers.GPT2LMHeadModel(shape).cuda().eval().half()
    x = torch.randint(0, 50257, (1, 32), device="cuda")

    def step() -> None:
        with torch.no_grad():
            model.generate(x, max_new_tokens=12, min_new_tokens=12, do_sample=False, pad_token_id=0)

    return step


PROGRAMS = (
    *(small_kernels, allocations, conjugate_gradient, uploads, graph_launches),
    *(large_kernels, perceptron, resnet, generation),
)


def synchronize() -> None:
    if "torch" in sys.modules:
        sys.modules["torch"].cuda.synchronize()
    else:
        import cupy

        cupy.cuda.Device().synchronize()


def measure(step: Step) -> None:
    """Run steps for some time, after the first ones each in a range of its own."""
    for _ in range(FIRST):
        step()
    synchronize()
    until, count = time.perf_counter() + SECONDS, 0
    while time.perf_counter() < until or count < FEWEST:
        count += 1
        with gpuviz.range(MEASURED):
            step()
            synchronize()


def times_ms(step: Step) -> list[float]:
    until = time.perf_counter() + SECONDS
    times: list[float] = []
    while time.perf_counter() < until or len(times) < FEWEST:
        began = time.perf_counter()
        step()
        synchronize()
        times.append((time.perf_counter() - began) * 1e3)
    return times


def measured(recording: Recording) -> tuple[float, float]:
    """Return the median time of a step, and of that in which the GPU worked in it, in ms."""
    names, ranges = recording.tables["strings"], recording.tables["ranges"]
    known = dict(zip(names["id"].to_pylist(), names["text"].to_pylist(), strict=True))
    steps = [each for each in ranges.to_pylist() if known[each["name"]] == MEASURED]
    begin, end = (np.array([each[name] for each in steps]) for name in ("time", "end"))
    work = recording.tables["activities"]
    busy = Intervals(work["time"].to_numpy(), work["end"].to_numpy()).within(begin, end)
    return float(np.median(end - begin)) / 1e6, float(np.median(busy)) / 1e6


def show(cells: list[str]) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


def run(program: Callable[[], Step]) -> bool:
    step = program()
    for _ in range(4):
        step()
    synchronize()
    rounds = [one_round(step) for _ in range(ROUNDS)]
    medians = [statistics.median(each) for each in zip(*rounds, strict=True)]
    # The processor's speed changes: what follows each other is compared.
    error = statistics.median(each[2] / each[0] for each in rounds) - 1
    truth = 100 * statistics.median(each[3] / each[0] for each in rounds)
    points = 100 * statistics.median(each[3] / each[2] - each[3] / each[0] for each in rounds)
    row = [f"{each:.2f} ms" for each in medians[:3]]
    row += [f"{100 * error:+.1f} %", f"{truth:.0f} %", f"{points:+.1f}"]
    show([program.__name__.replace("_", " "), *row])
    return abs(error) <= MOST_ERROR and abs(points) <= MOST_POINTS


def one_round(step: Step) -> tuple[float, float, float, float]:
    """Return the times of a step unrecorded, recorded and compensated, and its GPU work, in ms."""
    before = times_ms(step)
    with gpuviz.record() as recorder:
        measure(step)
    plain = statistics.median([*before, *times_ms(step)])
    return plain, measured(recorder.recording)[0], *measured(recorder.recording.compensated())


def main() -> int:
    if len(sys.argv) > 1:
        return 0 if run(globals()[sys.argv[1]]) else 1
    show(["program", "unrecorded", "recorded", "compensated", "error", "GPU busy", "off by"])
    show(["---"] * 7)
    command = [sys.executable, "-m", "tests.gpu.compensated_programs"]
    codes = [subprocess.call([*command, each.__name__]) for each in PROGRAMS]
    return max(codes)


if __name__ == "__main__":
    sys.exit(main())
