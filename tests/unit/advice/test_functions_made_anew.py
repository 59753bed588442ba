"""R47: fused functions and kernels of CuPy that the program makes anew before each call."""

import pyarrow as pa
import pytest

from gpuviz.advice.findings import findings
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording
from tests.unit.recording.from_activities import Timeline

RUNS, MS, LAUNCH_NS = 40, 1_000_000, 20_000
FILE = "program.py"
DECORATED = """
def step(x):
    @cp.fuse()
    def scale(y):
        return y * y + 1
    z = scale(x)
    return z
"""
IN_A_LOOP = """
def step(batches):
    for x in batches:
        scale = cupy.fuse(kernel_name="scale")(square)
        if x.size:
            z = scale(x)
"""
IN_THE_LINE = """
def step(x):
    z = cp.fuse(square)(x)
"""
KERNEL = """
def step(x):
    scale = cp.ElementwiseKernel(
        "T x", "T y", "y = x * x", "scale"
    )
    z = float(scale(x).sum())
"""
AT_MODULE_LEVEL = """
@cp.fuse()
def scale(y):
    return y * y + 1

def step(x):
    z = scale(x)
"""
BEFORE_THE_LOOP = """
def step(batches):
    @cp.fuse()
    def scale(y):
        return y * y + 1
    for x in batches:
        z = scale(x)
"""
IF_MISSING = """
def step(x, scale=None):
    if scale is None:
        scale = cp.fuse()(square)
    z = scale(x)
"""
PLAIN = """
def step(x):
    @timed
    def scale(y):
        return y * y + 1
    z = scale(x)
"""
OF_ANOTHER_FUNCTION = """
def prepare():
    scale = cp.fuse()(square)

def step(x):
    z = scale(x)
"""
LOADS = """
def step(path):
    scale = cp.fuse()(square)
    z = scale(load(path))
"""
OF_A_PROPERTY = """
def step(model):
    scale = cp.fuse()(square)
    z = scale(model.field)
"""


def recorded(  # noqa: PLR0913 - what the programs differ in
    text, *, made=RUNS, traced="step.<locals>.scale", names=1, sampled=RUNS, apart=2
):
    """Return the recording of a program that calls `scale`, and is sampled meanwhile.

    Args:
        text: Its text.
        made: Before how many of the calls the host works.
        traced: The function that it is in then.
        names: How many kernels are launched in turn.
        sampled: In how many of the calls it is sampled.
        apart: Every which sample is in that function, the others in CuPy.
    """
    lines = text.split("\n")
    line = next(n for n, each in enumerate(lines, 1) if each.strip().startswith("z = "))
    timeline, now, launches = Timeline(), MS, 0
    for run in range(RUNS):
        begin = now
        now += (MS if run < made else 0) + LAUNCH_NS
        if run < min(made, sampled):
            stack = timeline.stack(line, "scale" if run % apart else "traced")
            row = {"thread": 1, "state": "working", "time": begin, "end": now, "stack": stack}
            timeline.add("host_samples", row | {"samples": 1})
        for name, at in ((f"scale_{run % names}", line), ("cupy_sqrt__float32_float32", 99)):
            launches += 1
            timeline.call(now, now + 5_000, line=at, library="scale", correlation=launches)
            timeline.kernel(now + 6_000, now + 16_000, name, correlation=launches)
            now += 5_000 + LAUNCH_NS
    timeline.add("devices", {"device": 0, "name": "GPU"})
    return with_text(timeline.recording(duration_ns=now + MS), text, line, traced)


def with_text(recording, text, line, traced):
    """Return a recording in which CuPy has no frames, and calls a function of the program."""
    frames = recording.tables["frames"].to_pylist()
    known = {"filename": FILE, "context": text, "context_line": 1, "installed": 0}
    for row in frames:
        if row["name"] == "traced":
            row.update(known, name=traced, line=4)
        if row["name"] == "step" and row["line"] == line:
            row.update(known, source=text.split("\n")[line - 1].strip())
    of_cupy = {row["id"] for row in frames if row["name"] == "scale" and row["line"] == 1}
    stacks = recording.tables["stacks"].to_pylist()
    for row in stacks:
        row["frames"] = [each for each in row["frames"] if each not in of_cupy]
        row["user_frame"] = row["frames"][0]
    changed = {"frames": frames, "stacks": stacks}
    tables = {name: pa.Table.from_pylist(rows, schemas()[name]) for name, rows in changed.items()}
    return Recording({**recording.tables, **tables}, recording.manifest)


def rules(recording):
    return {each.rule for each in findings(recording)}


@pytest.mark.parametrize(
    ("text", "maker"),
    [
        pytest.param(DECORATED, "`@cp.fuse()`", id="decorated"),
        pytest.param(IN_A_LOOP, '`scale = cupy.fuse(kernel_name="scale")(square)`', id="in a loop"),
        pytest.param(IN_THE_LINE, "It makes the fused function anew", id="in the line"),
    ],
)
def test_a_fused_function_that_is_made_before_each_call_could_be_made_once(text, maker):
    (finding,) = findings(recorded(text))

    assert finding.rule == "R47"
    measured = recorded(text).duration_ns - recorded(text, made=1).duration_ns
    assert finding.saved_ns == pytest.approx(measured, rel=0.02)
    assert finding.title.endswith(f" gets a new fused function each of the {RUNS} times it runs.")
    assert finding.reason.startswith(maker)
    assert finding.change.startswith("Decorate the function once, at module level")
    assert "R47" not in rules(recorded(text, made=1))


def test_a_kernel_that_is_made_before_each_call_could_be_made_once():
    (finding,) = findings(recorded(KERNEL, traced="step"))

    assert finding.title == (
        f"`z = float(scale(x).sum())` gets a new kernel each of the {RUNS} times it runs."
    )
    assert finding.change.startswith("Create the kernel once, at module level")


def test_the_time_without_samples_counts_too():
    (finding,) = findings(recorded(DECORATED, sampled=RUNS // 4))

    measured = recorded(DECORATED).duration_ns - recorded(DECORATED, made=1).duration_ns
    assert finding.saved_ns == pytest.approx(measured, rel=0.02)


@pytest.mark.parametrize(
    "recording",
    [
        pytest.param(recorded(AT_MODULE_LEVEL, traced="scale"), id="decorated once"),
        pytest.param(recorded(BEFORE_THE_LOOP), id="made before the loop"),
        pytest.param(recorded(IF_MISSING, traced="square"), id="made if it is missing"),
        pytest.param(recorded(PLAIN), id="another decorator"),
        pytest.param(recorded(OF_ANOTHER_FUNCTION, traced="square"), id="of another function"),
        pytest.param(recorded(LOADS, traced="load"), id="an argument that takes time"),
        pytest.param(recorded(OF_A_PROPERTY, traced="Model.field", apart=1), id="a property"),
        pytest.param(recorded(DECORATED, names=RUNS // 4), id="different functions"),
        pytest.param(recorded(DECORATED, sampled=2), id="too few samples"),
        pytest.param(recorded(DECORATED, made=1), id="traced once"),
        pytest.param(recorded(DECORATED, made=4), id="traced a few times"),
    ],
)
def test_what_else_the_host_does_before_a_call_is_not_that(recording):
    assert "R47" not in rules(recording)
