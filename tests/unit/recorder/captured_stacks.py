"""Call stacks as rows of frames, in this process and in others."""

PROBE = """
from gpuviz import _core, _testing
from gpuviz.recorder.call_stacks import FrameResolver
session, resolver = _core.Session(stack_depth=256), FrameResolver()
frames = {}
def capture():
    _testing.capture_stack(session)
    stacks, new = resolver.resolve(session.new_stacks(resolver.next_stack))
    frames.update((row["id"], row) for row in new)
    return [
        [frames[i][key] for key in ("name", "filename", "line", "cell", "source")]
        for stack in stacks for i in stack["frames"]
    ][1:]
"""


def resolved(session, resolver, rows):
    """Return the newest stack as rows of frames without ids."""
    stacks, new = resolver.resolve(session.new_stacks(resolver.next_stack))
    rows.update((row["id"], row) for row in new)
    return [
        tuple(rows[frame][key] for key in ("name", "filename", "line", "cell", "source"))
        for frame in stacks[-1]["frames"]
    ]


def code_of(name, filename):
    module = compile(f"def {name}(): pass", filename, "exec")
    return module if name == "module" else module.co_consts[0]
