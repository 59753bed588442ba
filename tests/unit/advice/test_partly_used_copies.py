"""R84: copies to the host of which a part is used."""

import pytest

import gpuviz
from gpuviz.advice.findings import findings
from gpuviz.advice.source.parsed_text import parsed
from gpuviz.advice.source.taken_parts import most_taken
from gpuviz.recording import Recording
from tests.unit.advice.lines import function_with
from tests.unit.advice.programs import MIB, without_frames
from tests.unit.advice.training import installed

ROUNDS, SIZE, FACTOR = 6, 32 * MIB, 32


class Host:
    """A copy on the host, of which any part is one."""

    def __getitem__(self, _):
        return self

    def __add__(self, _):
        return self

    def numpy(self):
        return self


class OnGpu:
    """An array of which any part has a 32nd of its bytes."""

    def __init__(self, gpu, array):
        self.gpu, self.array = gpu, array

    def __getitem__(self, _):
        part = self.gpu.empty(self.array.nbytes // FACTOR)
        kernel = "cupy_copy__float32_float32"
        self.gpu.launch(kernel, duration=1e-5, reads=[self.array], writes=[part])
        return OnGpu(self.gpu, part)

    def copied(self, **_):
        self.gpu.copy_to_host(self.array)
        return Host()

    get = cpu = copied


def _copied(array):
    array.gpu.copy_to_host(array.array)
    return Host()


asnumpy = installed(_copied, "cupy/__init__.py", "asnumpy")
transfer = installed(_copied, "library/io.py", "transfer")


def shows(gpu, look):
    """Look at an array in each round, which a kernel has changed before."""
    x = OnGpu(gpu, gpu.empty(SIZE))
    for _ in range(ROUNDS):
        gpu.launch("simulate", duration=2e-3, reads=[x.array], writes=[x.array])
        look(x)


def recorded(look) -> Recording:
    """Return the recording of a program, without frames of methods that have none in CuPy."""
    gpu = gpuviz.SimulatedGPU(real_time=False)
    with gpuviz.record(device=gpu) as recorder:
        shows(gpu, look)
        gpu.synchronize()
    return without_frames(without_frames(recorder.recording, "OnGpu.copied"), "OnGpu.__getitem__")


def takes_a_part() -> Recording:
    """Return the recording of a program that copies an array for each 32nd element of two axes."""
    thumbnails = []

    def look(x):
        thumbnails.append(x.get()[::32, ::32])

    return recorded(look)


class Table:
    """What has other arrays by name."""

    def __init__(self, x):
        self.x = x

    def get(self, _=None):
        return [self.x, self.x]


@pytest.fixture(name="run")
def run_of_line(tmp_path):
    """Return a function that returns the recording of a program with a line of text."""

    def run(line, **names):
        look = function_with(tmp_path, line)
        given = {"asnumpy": asnumpy, "transfer": transfer, "host": None, "i": 1, **names}
        return recorded(lambda x: look(x=x, y=x, table=Table(x), **given))

    return run


def found(recording, rule="R84"):
    return [each for each in findings(recording, small=True) if each.rule == rule]


def test_a_part_of_a_copy_is_found_and_copying_only_that_saves_what_was_predicted(run):
    before, after = run("x.get()[::32]"), run("x[::32].get()")
    (finding,) = found(before)

    measured = before.duration_ns - after.duration_ns
    assert finding.saved_ns == pytest.approx(measured, rel=0.05)
    assert finding.title == (
        "`return x.get()[::32]` copies 192 MiB to the host, and takes at most 3.1 % of it there."
    )
    assert "`x[::32].get()`" in finding.change
    assert finding.certainty == "likely"
    assert found(after) == []


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("x.get()[::32, ::32]", "x[::32, ::32].get()"),
        ("x.get(order='C')[..., 2:3]", "x[..., 2:3].get(order='C')"),
        ("asnumpy(x)[1]", "asnumpy(x[1])"),
        ("x.cpu()[:, -3]", "x[:, -3].cpu()"),
        ("x.cpu().numpy()[0, 1]", "x[0, 1].cpu().numpy()"),
        ("[x.get()[None, ::2] for _ in range(1)]", "x[None, ::2].get()"),
        ("x.get()[1] + asnumpy(x)[::2]", "x[1].get()"),
        ("x[::32].get() if i == 2 else x.get()[::32]", "x[::32].get()"),
    ],
)
def test_parts_that_constants_show_are_found(run, line, instead):
    (finding,) = found(run(line))

    assert f"`{instead}`" in finding.change


def test_pinned_memory_is_not_advised_for_what_need_not_be_copied(run):
    assert len(found(run("x.get()"), "R17")) == 1
    assert found(run("x.get()[::32]"), "R17") == []


@pytest.mark.parametrize(
    "line",
    [
        # All of the array, or what may be all of it.
        "x.get()",
        "x.get()[:]",
        "x.get()[...]",
        "x.get()[None]",
        "x.get()[()]",
        "x.get()[::1]",
        "x.get()[::-1]",
        "x.get()[0]",
        "x.get()[-1]",
        "x.get()[0, :, -1]",
        "x.get()[:10]",
        "x.get()[10:]",
        "x.get()[-10:]",
        "x.get()[:i]",
        "x.get()[::i]",
        # More than half of it.
        "x.get()[1:10]",
        # Masks and arrays of indices, which may repeat elements.
        "x.get()[i]",
        "x.get()[::2, i]",
        "x.get()[True]",
        "x.get()[[1, 2]]",
        # The whole is used elsewhere.
        "(kept := x.get())[::32]",
        "x.get(out=host)[::32]",
        "x.get()[::32] + x.get()",
        "print(x.get()) or x.get()[::32]",
        "str(x) and x.get()[::32]",
        "y.get() if i == 2 else x.get()[::32]",
        # Another function makes the copy.
        "transfer(x)[::32]",
        "transfer(x) and x.get()[::32]",
        "asnumpy(table.get()[1])",
        "table.get('x')[1].get()",
        # Only a part is copied.
        "x[::32].get()",
        "x[::32].get() if i == 1 else x.get()[::32]",
    ],
)
def test_copies_that_may_be_needed_are_no_finding(run, line):
    assert found(run(line)) == []


def test_small_copies_are_no_finding(run):
    assert found(run("x[0][0].get()[::2]")) == []


@pytest.mark.parametrize(
    ("index", "share"),
    [
        ("1", 1 / 2),
        ("-4", 1 / 4),
        ("2:3", 1 / 3),
        ("-8:-6", 1 / 4),
        ("5:8:2", 3 / 8),
        ("::4, 1", 1 / 8),
        ("2:1", 1),
        ("-3:5", 1),
        ("...", 1),
        ("None, 3", 1 / 4),
        ("mask", None),
    ],
)
def test_a_share_holds_for_every_length_of_the_axis(index, share):
    tree = parsed(f"x[{index}]")

    assert most_taken(tree.body[0].value.slice) == pytest.approx(share)
