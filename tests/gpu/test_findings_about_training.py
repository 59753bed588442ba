"""Findings about training programs of torch on a real GPU, with what the advice saves."""

import gc

import pytest

import gpuviz

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.gpu

WIDTH = 1024
# Of the measured saving; what is freed when also depends on torch's own temporary arrays.
WITHIN = 0.2


def recorded(program):
    """Return the recording of the second run, and the peak of the program without a recording."""
    program()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    program()
    peak = torch.cuda.max_memory_allocated()
    gc.collect()
    with gpuviz.record() as recorder:
        program()
        torch.cuda.synchronize()
    return recorder.recording, peak


def check(rule, before, after):
    """Check that a rule finds the first program only, and predicts what the second one saves."""
    fault, high = recorded(before)
    fixed, low = recorded(after)
    (found,) = [each for each in fault.findings() if each.rule == rule]

    assert found.saved_bytes == pytest.approx(high - low, rel=WITHIN)
    assert rule not in {each.rule for each in fixed.findings()}


def layers(count=8):
    modules = [each for _ in range(count) for each in (linear(), torch.nn.GELU())]
    return torch.nn.Sequential(*modules).cuda()


def linear():
    return torch.nn.Linear(WIDTH, WIDTH)


def test_a_loss_that_is_kept_with_its_graph():
    model, x = layers(), torch.randn(8192, WIDTH, device="cuda")

    def evaluate(*, gradients):
        total = 0
        with torch.set_grad_enabled(gradients):
            for _ in range(8):
                total = total + model(x).square().mean()
        return float(total.detach())

    check("R50", lambda: evaluate(gradients=True), lambda: evaluate(gradients=False))


def test_inference_with_gradients_enabled():
    model, x = layers(), torch.randn(8192, WIDTH, device="cuda")

    def infer(*, gradients):
        with torch.set_grad_enabled(gradients):
            for _ in range(4):
                float(model(x).sum().detach())

    check("R51", lambda: infer(gradients=True), lambda: infer(gradients=False))


def test_activations_that_checkpointing_saves():
    from torch.utils.checkpoint import checkpoint_sequential

    model = layers()
    x = torch.randn(16384, WIDTH, device="cuda", requires_grad=True)

    def train(*, segments):
        for _ in range(3):
            if segments:
                y = checkpoint_sequential(model, segments, x, use_reentrant=False)
            else:
                y = model(x)
            y.square().mean().backward()

    check("R52", lambda: train(segments=0), lambda: train(segments=4))


def test_temporary_arrays_of_an_optimizer():
    def train(**options):
        model = layers()
        optimizer = torch.optim.Adam(model.parameters(), **options)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(8, WIDTH, device="cuda")).sum().backward()
            optimizer.step()

    check("R53", lambda: train(foreach=True), lambda: train(fused=True))


def test_gradients_of_a_part_with_a_learning_rate_of_zero():
    x = torch.randn(8192, WIDTH, device="cuda")

    def train(*, frozen):
        encoder, head = layers().requires_grad_(not frozen), linear().cuda()
        groups = [{"params": head.parameters()}]
        if not frozen:
            groups.append({"params": encoder.parameters(), "lr": 0.0})
        optimizer = torch.optim.SGD(groups, lr=1e-3)
        for _ in range(5):
            optimizer.zero_grad()
            head(encoder(x)).square().mean().backward()
            optimizer.step()

    check("R61", lambda: train(frozen=False), lambda: train(frozen=True))


def test_an_array_that_goes_to_torch_through_the_host():
    cp = pytest.importorskip("cupy")

    def rules(pass_on):
        def program():
            for _ in range(6):
                float(pass_on(cp.random.random(1 << 20, cp.float32)).sum())

        recording, _ = recorded(program)
        return {each.rule for each in recording.findings()}

    assert "R62" in rules(lambda array: torch.from_numpy(cp.asnumpy(array)).cuda())
    assert "R62" not in rules(torch.from_dlpack)


def test_distances_that_wait_until_the_nearest_are_taken():
    base, queries = (torch.randn(count, 64, device="cuda") for count in (100_000, 24 * 256))

    def nearest(distances):
        return distances.topk(10, largest=False).indices

    def kept():
        for _ in range(2):
            distances = [torch.cdist(part, base) for part in queries.split(256)]
            found = [nearest(each) for each in distances]
            del distances
        return len(found)

    def of_each():
        for _ in range(2):
            found = [nearest(torch.cdist(part, base)) for part in queries.split(256)]
        return len(found)

    check("R63", kept, of_each)


def rules_of(program):
    """Return the rules of what is found in the second run of a program."""
    recording, _ = recorded(program)
    return {each.rule for each in recording.findings()}


@pytest.fixture
def any_precision():
    """Set the precision of matrix products as it was."""
    before = torch.get_float32_matmul_precision()
    yield
    torch.set_float32_matmul_precision(before)


@pytest.mark.usefixtures("any_precision")
def test_products_in_float32_without_tensor_cores():
    def train(precision):
        torch.set_float32_matmul_precision(precision)
        model = layers()
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        for _ in range(5):
            optimizer.zero_grad()
            model(torch.randn(8192, WIDTH, device="cuda")).square().mean().backward()
            optimizer.step()

    assert "R77" in rules_of(lambda: train("highest"))
    assert "R77" not in rules_of(lambda: train("high"))


def test_products_of_unaligned_rows():
    def train(classes):
        head = torch.nn.Linear(WIDTH, classes).cuda()
        for _ in range(5):
            with torch.autocast("cuda", torch.bfloat16):
                scores = head(torch.randn(4096, WIDTH, device="cuda"))
            scores.float().logsumexp(dim=1).sum().backward()

    assert "R78" in rules_of(lambda: train(30001))
    assert "R78" not in rules_of(lambda: train(30016))
    assert "R78" not in rules_of(lambda: train(1))


def test_images_in_nchw():
    def train(layout):
        convolutions = [
            each
            for _ in range(3)
            for each in (torch.nn.Conv2d(64, 64, 3, padding=1), torch.nn.BatchNorm2d(64))
        ]
        model = torch.nn.Sequential(*convolutions).cuda().to(memory_format=layout)
        x = torch.randn(64, 64, 56, 56, device="cuda").contiguous(memory_format=layout)
        for _ in range(5):
            with torch.autocast("cuda", torch.bfloat16):
                loss = model(x).square().mean()
            loss.backward()

    assert "R79" in rules_of(lambda: train(torch.contiguous_format))
    assert "R79" not in rules_of(lambda: train(torch.channels_last))
