"""Call stacks of threads that do the work of another one, such as those of a backward pass."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from gpuviz import _core, _testing


@pytest.fixture
def session():
    session = _core.Session(stack_depth=8)
    session.start()
    yield session
    session.stop()


@pytest.fixture
def lender(session):
    lender = _core.StackLender(_testing.current_graph())
    lender.set_session(session)
    yield lender
    lender.set_session(None)


def functions(session, stack):
    """Return the names of the functions of a stack, innermost first."""
    found = session.new_stacks(1)
    return [code.co_name for code, _ in found[stack - 1] if code is not None]


@pytest.mark.parametrize("without_waiting", [False, True])
def test_a_thread_that_works_on_a_graph_has_the_stack_of_who_waits_for_it(
    session, lender, without_waiting
):
    def run_backward(*graphs, scale):
        return [scale * _testing.capture_elsewhere(session, g, without_waiting) for g in graphs]

    of_graph, of_none = lender.lending(run_backward)(0, -1, scale=1)
    after = _testing.capture_elsewhere(session, 0, without_waiting)

    assert functions(session, of_graph)[0] == (
        "test_a_thread_that_works_on_a_graph_has_the_stack_of_who_waits_for_it"
    )
    assert (of_none, after) == (0, 0)


def test_a_function_that_such_a_thread_calls_is_called_by_who_waits_for_it(session, lender):
    """As a hook of the program, which a thread of the backward pass calls."""

    def hook():
        _testing.work_on_graph(0)
        return _testing.capture_stack(session)

    def run_backward():
        with ThreadPoolExecutor(1) as thread:
            first = thread.submit(hook).result()
            again = thread.submit(hook).result()
        return first, again

    first, again = lender.lending(run_backward)()

    names = functions(session, first)
    assert names[0] == "hook"
    assert names.index("hook") < names.index(
        "test_a_function_that_such_a_thread_calls_is_called_by_who_waits_for_it"
    )
    assert first == again


def test_the_stack_of_who_lends_is_its_own(session, lender):
    def run_backward():
        _testing.work_on_graph(0)
        return _testing.capture_stack(session)

    names = functions(session, lender.lending(run_backward)())
    _testing.work_on_graph(-1)

    assert names.count("test_the_stack_of_who_lends_is_its_own") == 1


def test_an_exception_ends_it_and_reaches_the_program(session, lender):
    def fails():
        raise ValueError("of the program")

    with pytest.raises(ValueError, match="of the program"):
        lender.lending(fails)()
    assert _testing.capture_elsewhere(session, 0, False) == 0


def test_without_a_session_nothing_is_lent(session, lender):
    lender.set_session(None)

    assert lender.lending(lambda: _testing.capture_elsewhere(session, 0, False))() == 0


def test_while_two_threads_lend_it_is_not_known_for_whom_a_thread_works(session, lender):
    inside, done = threading.Event(), threading.Event()

    def other():
        inside.set()
        assert done.wait(60)

    thread = threading.Thread(target=lender.lending(other))

    def meanwhile():
        thread.start()
        assert inside.wait(60)
        stack = _testing.capture_elsewhere(session, 0, False)
        done.set()
        thread.join()
        return stack

    assert lender.lending(meanwhile)() == 0
    assert lender.lending(lambda: _testing.capture_elsewhere(session, 0, False))() != 0
