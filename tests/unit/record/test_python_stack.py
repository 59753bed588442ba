import random
import subprocess
import sys
import threading

import pytest

from gpuviz import _core, _testing
from tests.examples import share_of


def captured(session):
    """Return the stack of the caller's caller from gpuviz and from Python."""
    stack = session.new_stacks(_testing.capture_stack(session))[0][1:]
    frame, expected = sys._getframe(1), []
    while frame:
        expected.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return stack, expected


def nested(depth, then):
    return nested(depth - 1, then) if depth else then()


@pytest.mark.parametrize("depth", [0, 1, 30])
def test_a_capture_finds_the_frames_and_instructions_of_the_caller(depth):
    session = _core.Session(stack_depth=256)

    stack, expected = nested(depth, lambda: captured(session))

    assert session.stack_method == "frames"
    assert stack == expected


@pytest.mark.parametrize("misread", [False, True])
def test_a_python_that_is_not_as_expected_is_walked_by_attributes(misread):
    session = _testing.session_on_unknown_python(misread=misread)

    stack, expected = nested(5, lambda: captured(session))

    assert session.stack_method == "attributes"
    assert stack == expected[: len(stack)]
    assert len(stack) > 7


def test_the_walk_by_attributes_leaves_an_exception_that_is_passing():
    session = _testing.session_on_unknown_python(misread=False)

    def fail():
        raise KeyError(1234)

    with pytest.raises(KeyError, match="1234"):
        [_testing.CaptureAtDeath(session), fail()]

    assert len(session.stacks) == 1


EXITS = """
from gpuviz import _core, _testing
session = _core.Session()
session.start()
sink = session.sink(0)
class Array:
    def __del__(self, capture=_testing.capture_stack, push=_testing.push_event, session=session):
        push(session.sink(0), time_ns=0)
        print(capture(session), len(session.stacks))
array = Array()
print(_testing.capture_stack(session))
"""


def test_a_recording_that_still_runs_at_exit_captures_nothing_more_and_harms_nothing():
    ran = subprocess.run(
        [sys.executable, "-c", EXITS], check=True, capture_output=True, text=True, timeout=60
    )

    assert ran.stdout == "1\n0 1\n"
    assert ran.stderr == ""


def test_frames_of_generators_comprehensions_classes_and_coroutines_are_found():
    session = _core.Session(stack_depth=256)

    def generator():
        yield captured(session)

    class Holder:
        result = captured(session)

    async def coroutine():
        return captured(session)

    with pytest.raises(StopIteration) as stopped:
        coroutine().send(None)
    cases = [next(generator()), Holder.result, stopped.value.value]
    cases += [captured(session) for _ in range(1)]
    cases += [sorted([3], key=lambda _: captured(session)) and captured(session)]

    for stack, expected in cases:
        assert stack == expected


def test_a_stack_captured_without_the_gil_is_owned_when_python_code_runs_again():
    session = _core.Session(stack_depth=256)

    def captured_below():
        return _testing.capture_stack_without_waiting(session, with_gil=False)

    namespace = {"below": captured_below}
    exec("def once():\n    return below()\nnumber = once()\ndel once", namespace)  # noqa: S102

    (stack,) = session.new_stacks(1)
    assert namespace["number"] == 1
    assert [code.co_name for code, _ in stack[:3]] == ["captured_below", "once", "<module>"]


def test_a_stack_of_a_thread_that_has_left_it_loses_its_frames_unless_captured_with_the_gil():
    session = _core.Session(stack_depth=256)
    ids = []

    def capture(with_gil):
        ids.append(_testing.capture_stack_without_waiting(session, with_gil=with_gil))

    def both():
        for with_gil in (False, True):
            capture(with_gil)

    for work in (both, lambda: capture(with_gil=False)):
        _testing.call_elsewhere(work)

    same, unowned = session.new_stacks(1)
    assert ids == [1, 1, 2]
    assert [code.co_name for code, _ in same[:2]] == ["capture", "both"]
    assert unowned == [(None, len(same))]


def test_the_same_line_is_one_stack_and_another_line_another():
    session = _core.Session()

    same = {_testing.capture_stack(session) for _ in range(5)}
    other = _testing.capture_stack(session)

    assert same == {1}
    assert other == 2
    assert len(session.stacks) == 2


def test_stacks_that_recur_in_any_order_are_those_of_python():
    session = _core.Session(stack_depth=256)
    draw = random.Random(1234)

    def generator():
        while True:
            yield captured(session)

    def exhausted():
        return next(generator())

    def of_new_code():
        return eval(compile("c(s)", "new", "eval"), {"c": captured, "s": session})  # noqa: S307

    kept = generator()
    ways = [
        lambda: captured(session),
        lambda: [captured(session) for _ in range(2)][draw.randrange(2)],
        lambda: next(kept),
        exhausted,
        of_new_code,
    ]
    for _ in range(share_of(3000)):
        stack, expected = nested(draw.randrange(4) * draw.randrange(12), draw.choice(ways))
        assert stack == expected


@pytest.mark.parametrize("misread", [False, True])
@pytest.mark.parametrize("depth", [4, 5, 8, 31])
@pytest.mark.parametrize("more", [0, 1, 2, 29, 400])
def test_of_deep_stacks_the_innermost_and_outermost_frames_are_kept(depth, more, misread):
    if misread:
        session = _testing.session_on_unknown_python(misread=True, stack_depth=depth)
    else:
        session = _core.Session(stack_depth=depth)

    stack, expected = nested(more, lambda: captured(session))

    # One of the innermost is the helper's own.
    inner, outer = (depth - 1) // 2 - 1, depth // 2
    assert stack[:inner] == expected[:inner]
    assert stack[inner] == (None, len(expected) - inner - outer)
    assert stack[inner + 1 :] == expected[-outer:]


def test_very_short_stacks_have_the_innermost_frames_only():
    session = _core.Session(stack_depth=3)

    nested(10, lambda: _testing.capture_stack(session))

    names = [code.co_name for code, _ in session.new_stacks(1)[0]]
    assert names == ["<lambda>", "nested", "nested"]


def test_a_capture_in_a_deallocation_leaves_the_exception_that_is_passing():
    session = _core.Session(stack_depth=2)

    def fail():
        raise KeyError(1234)

    def unwind():
        return [_testing.CaptureAtDeath(session), fail()]

    with pytest.raises(KeyError, match="1234"):
        unwind()

    [stack] = session.new_stacks(1)
    assert stack[0][0].co_name == "unwind"


def test_threads_see_their_own_stack():
    session = _core.Session()
    stacks = {}

    def work(name):
        stacks[name] = nested(len(name), lambda: captured(session))

    threads = [threading.Thread(target=work, args=("x" * n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(stacks) == 4
    assert all(stack == expected for stack, expected in stacks.values())


def test_a_tracing_debugger_does_not_hide_frames():
    session = _core.Session(stack_depth=256)
    before = sys.gettrace()

    sys.settrace(lambda *_: None)
    try:
        stack, expected = nested(3, lambda: captured(session))
    finally:
        sys.settrace(before)

    assert stack == expected


def test_code_that_is_gone_stays_readable_until_the_session_ends():
    session = _core.Session()
    namespace = {"capture": _testing.capture_stack, "session": session}
    gone = compile("def gone():\n    return capture(session)", "gone.py", "exec")
    exec(gone, namespace)  # noqa: S102
    del gone
    namespace["gone"]()
    code = namespace["gone"].__code__
    references = sys.getrefcount(code)

    namespace.clear()
    names = [code.co_name for code, _ in session.new_stacks(1)[0]]

    assert names[0] == "gone"
    assert sys.getrefcount(code) == references - 1
    del session
    assert sys.getrefcount(code) == references - 2


def test_a_full_table_gives_no_stack_and_counts():
    session = _core.Session(max_stacks=2, stack_depth=8)

    ids = [eval("c(s)", {"c": _testing.capture_stack, "s": session}) for _ in range(4)]  # noqa: S307

    assert ids == [1, 2, 0, 0]
    assert (len(session.stacks), session.stacks.dropped) == (2, 2)


def test_without_depth_nothing_is_captured():
    session = _core.Session(stack_depth=0)

    assert _testing.capture_stack(session) == 0
    assert session.stack_method == "none"


def test_stack_ids_begin_at_one():
    with pytest.raises(ValueError, match="begin at 1, got first_id 0"):
        _core.Session().new_stacks(0)


def test_thread_ids_are_those_of_the_operating_system():
    assert _testing.thread_id() == threading.get_native_id()
