"""R63: outputs that hooks keep for a report."""

import pytest

from tests.unit.advice.kept_lists import SIZE, Paths, waiting
from tests.unit.advice.timed_programs import timed


class Monitor(Paths):
    """Outputs of two layers that hooks keep, and kernels of PyTorch that reduce each at last."""

    STEPS, LAYERS = 12, 2

    def __init__(self, gpu):
        super().__init__(gpu)
        self.outputs = [[] for _ in range(self.LAYERS)]

    def train(self, *, at_once=False, stale=(), uses_first=False):
        for step in range(self.STEPS):
            inner = None
            for layer in range(self.LAYERS):
                # An activation of the same line, which the step itself uses.
                output, inner = self.gpu.empty(SIZE), self.gpu.empty(SIZE)
                self.gpu.launch("make", duration=1e-4, writes=[output, inner])
                self.gpu.launch("step", duration=1e-4, reads=[inner], writes=[self.state])
                kept = self.share(output) if at_once else output
                self.outputs[layer].append(kept)
                del output, kept
            first = self.outputs[0][0]
            read = [first] if uses_first or step in stale else []
            self.gpu.launch("backward", duration=1e-4, reads=[inner, *read], writes=[self.state])

    def share(self, output, *others, scalar=1.0):
        magnitude, total = self.gpu.empty(SIZE // 2), self.gpu.empty(512)
        name = "void at::native::vectorized_elementwise_kernel<4, ...>(...)"
        named = {"name": name, "duration": 1e-5, "writes": [magnitude], "scalars": [scalar]}
        self.gpu.launch(reads=[output, *others], **named)
        name = "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, ...> >(...)"
        self.gpu.launch(name, duration=1e-5, reads=[magnitude], writes=[total])
        return total

    def report(self, *others):
        """Reduce each output of a layer, and join the results of the layer."""
        shares = []
        for outputs in self.outputs:
            of_layer = []
            for number, output in enumerate(outputs):
                # Bytes that the arguments of PyTorch's kernels have unset differ.
                of_layer.append(self.share(output, *others, scalar=float(number)))
            shares.append(self.gpu.empty(512))
            self.gpu.launch("CatArray", duration=1e-6, reads=of_layer, writes=[shares[-1]])
        self.combine(shares)


def monitored(gpu, **options):
    monitor = Monitor(gpu)
    monitor.train(**options)
    monitor.report()


def monitored_at_once(gpu):
    monitor = Monitor(gpu)
    monitor.train(at_once=True)
    monitor.combine([each for outputs in monitor.outputs for each in outputs])


def by_the_last_state(gpu):
    monitor = Monitor(gpu)
    monitor.train()
    monitor.report(monitor.state)


def by_the_first_output(gpu):
    """Each output is compared with what the reductions before it have left."""
    monitor = Monitor(gpu)
    monitor.train()
    for outputs in monitor.outputs:
        last = gpu.empty(512)
        for output in outputs:
            last = monitor.share(output, last)


def used_again_at_last(gpu):
    monitor = Monitor(gpu)
    monitor.train()
    monitor.report()
    monitor.combine([monitor.outputs[0][3]])


@pytest.mark.parametrize("options", [{}, {"stale": [Monitor.STEPS - 1]}, {"uses_first": True}])
def test_outputs_that_hooks_keep_for_a_report_are_found_also_if_the_loop_uses_the_first(options):
    (finding,) = waiting(lambda gpu: monitored(gpu, **options))

    before, after = timed(lambda gpu: monitored(gpu, **options)), timed(monitored_at_once)
    saved = before.peak().bytes - after.peak().bytes
    assert finding.saved_bytes == pytest.approx(saved, abs=4 * SIZE)
    assert waiting(monitored_at_once) == []


@pytest.mark.parametrize("program", [by_the_last_state, by_the_first_output, used_again_at_last])
def test_outputs_whose_report_needs_more_than_each_of_them_are_no_finding(program):
    assert waiting(program) == []
