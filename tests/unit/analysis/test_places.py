"""Places of times and addresses that the native core finds, against plain Python."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz import _core
from gpuviz.data.first_rows import first_rows
from tests.examples import examples

EXAMPLES = examples(300)
TIME = st.integers(0, 12)
TIMES = st.lists(TIME, max_size=12)
IDS = st.lists(st.integers(-3, 30) | st.integers(-(2**63), 2**63 - 1), max_size=20)


def numbers(values):
    return np.array(values, np.int64)


@EXAMPLES
@given(events=TIMES, begins=st.sets(TIME), ends=st.sets(TIME), wanted=TIMES)
def test_events_and_lines_have_places_in_the_order_of_their_times(events, begins, ends, wanted):
    events, begins, ends = sorted(events), sorted(begins), sorted(ends)
    scale = _core.EventPlaces(numbers(events), numbers(begins), numbers(ends))
    at_event = set(events)

    def place(time, *, after_events, after_begin, after_end):
        passed = sum(each < time or (after_events and each == time) for each in events)
        begun = sum(each < time or (after_begin and each == time) for each in begins)
        ended = sum(each < time or (after_end and each == time) for each in ends)
        return 2 * passed + begun + ended

    def before(time):
        is_alone = time not in at_event
        return place(time, after_events=False, after_begin=False, after_end=is_alone)

    def after(time):
        is_at_event = time in at_event
        return place(time, after_events=True, after_begin=is_at_event, after_end=True)

    places = scale.of_events().tolist()

    assert scale.count == 2 * len(events) + len(begins) + len(ends) + 2
    assert places[-1] == scale.count - 1
    assert scale.before(numbers(wanted)).tolist() == [before(time) for time in wanted]
    assert scale.after(numbers(wanted)).tolist() == [after(time) for time in wanted]
    for time, own in zip(events, places[:-1], strict=True):
        assert before(time) < own < after(time)
    assert sorted(set(places)) == places


@EXAMPLES
@given(
    blocks=st.lists(st.tuples(st.integers(1, 3), TIME, st.integers(-1, 12)), max_size=12),
    wanted=st.lists(st.tuples(st.integers(1, 4), TIME), max_size=12),
)
def test_the_block_alive_at_an_address_is_the_last_that_was_made_there(blocks, wanted):
    address, begin, end = numbers(blocks).reshape(-1, 3).T.copy()
    rows = {"address": address.astype(np.uint64), "begin": begin, "end": end}

    def alive(at, time):
        known = [row for row, (of, made, _) in enumerate(blocks) if of == at and made <= time]
        if not known:
            return -1
        last = max(known, key=lambda row: (blocks[row][1], row))
        return last if blocks[last][2] < 0 or blocks[last][2] >= time else -1

    found = _core.alive_blocks(
        rows, np.array([at for at, _ in wanted], np.uint64), numbers([time for _, time in wanted])
    )

    assert found.tolist() == [alive(at, time) for at, time in wanted]


@EXAMPLES
@given(
    rows=st.lists(
        st.tuples(TIME, TIME, st.integers(0, 1), st.integers(0, 2), st.integers(0, 2)), max_size=14
    )
)
def test_a_run_lasts_from_the_first_to_the_last_row_of_a_line(rows):
    time, length, thread, stack, line = numbers(rows).reshape(-1, 5).T.copy()
    end = time + length
    columns = {"time": time, "end": end} | {
        name: column.astype(np.uint32)
        for name, column in (("thread", thread), ("stack", stack), ("line", line))
    }
    order = np.lexsort((time, thread))

    begins, ends = _core.line_runs(columns, order)

    runs = []
    for row in [row for row in order.tolist() if stack[row]]:
        if runs and (thread[row], line[row]) == (thread[runs[-1][0]], line[runs[-1][0]]):
            runs[-1].append(row)
        else:
            runs.append([row])
    expected = {row: ([row], row) for row in range(len(rows))}
    expected |= {row: (run, row) for run in runs for row in run}
    assert begins.tolist() == [time[expected[row][0]].min() for row in range(len(rows))]
    assert ends.tolist() == [end[expected[row][0]].max() for row in range(len(rows))]


def test_an_order_of_rows_that_do_not_exist_is_refused():
    times, ids = np.zeros(2, np.int64), np.zeros(2, np.uint32)
    columns = {"time": times, "end": times, "thread": ids, "stack": ids, "line": ids}

    for order in ([2], [-1]):
        with pytest.raises(ValueError, match="rows that exist"):
            _core.line_runs(columns, numbers(order))


@EXAMPLES
@given(known=IDS, wanted=IDS)
def test_ids_of_any_sign_are_found_in_their_first_rows(known, wanted):
    wanted = [*wanted, *known[::3]]

    rows = first_rows(numbers(known), numbers(wanted))

    assert rows.tolist() == [known.index(n) if n and n in known else -1 for n in wanted]
