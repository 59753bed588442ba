"""The list of recorded workers, from the events that they log."""

from gpuviz.dask.worker_list import WorkerList

MIB = 1 << 20


def began(name, problem="", run="run"):
    return {"run": run, "name": name, "host": "10.0.0.1", "path": "a.gpuviz", "problem": problem}


def memory(name, allocated, peak, *, ended=False):
    levels = {"allocated": allocated, "peak": peak, "reserved": 2 * peak}
    return {"run": "run", "name": name, "host": "10.0.0.1", "ended": ended, **levels}


def listed(*events):
    workers = WorkerList("run")
    for event in events:
        workers.take(event)
    return workers


def test_a_worker_has_its_latest_memory():
    workers = listed(began("0"), memory("0", MIB, 2 * MIB), memory("0", 3 * MIB, 4 * MIB))

    (row,) = workers.rows
    assert (row.name, row.host, row.state) == ("0", "10.0.0.1", "recording")
    assert (row.allocated, row.peak, row.reserved) == (3 * MIB, 4 * MIB, 8 * MIB)


def test_a_worker_whose_recording_ended_keeps_its_memory():
    (row,) = listed(began("0"), memory("0", 0, 2 * MIB, ended=True)).rows

    assert (row.state, row.peak) == ("recorded", 2 * MIB)


def test_a_worker_that_restarts_begins_anew():
    (row,) = listed(began("0"), memory("0", MIB, MIB), began("0")).rows

    assert (row.state, row.allocated, row.peak) == ("recording", 0, 0)


def test_events_of_another_recording_are_ignored():
    assert listed(began("0", run="other")).rows == []


def test_a_worker_that_is_not_recorded_has_the_reason():
    (row,) = listed(began("0", "not recorded (no GPU)")).rows

    assert row.state == "not recorded (no GPU)"


def test_after_the_recording_each_worker_is_recorded_or_has_a_problem():
    workers = listed(began("0"), began("1"), began("2", "not recorded (no GPU)"))

    workers.end({"1": "no worker can read it", "2": "not recorded (no GPU)"})

    states = [row.state for row in workers.rows]
    assert states == ["recorded", "no worker can read it", "not recorded (no GPU)"]


def test_workers_are_in_the_order_of_their_numbers_with_their_sum():
    workers = listed(*(began(str(number)) for number in (10, 2)), memory("2", MIB, 2 * MIB))
    workers.take(memory("10", 3 * MIB, 5 * MIB))

    lines = [line.split() for line in workers.text().splitlines()]
    assert [line[0] for line in lines] == ["worker", "2", "10", "all"]
    assert lines[1][2:] == ["recording", "1.00", "MiB", "2.00", "MiB", "4.00", "MiB"]
    assert lines[3] == ["all", "workers", "4.00", "MiB", "14.0", "MiB"]


def test_names_from_the_cluster_are_escaped():
    html = listed(began("<script>")).html()

    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def test_texts_of_workers_stay_texts():
    shown = listed(began("<b>\x1b[2J\x9b\r", problem="<i>\x1b]0;owned\x07"))

    assert not {"\x1b", "\x9b", "\r", "\x07"} & {*shown.text()}
    assert r"<b>\x1b[2J\x9b\r" in shown.text()
    assert "<b>" not in shown.html()
    assert "<i>" not in shown.html()


def test_many_workers_are_counted():
    html = listed(*(began(str(number)) for number in range(100))).html()

    assert "and 36 more workers" in html
    assert html.count("<tr>") == 1 + 64 + 1


def test_without_a_worker_there_is_a_sentence():
    assert listed().text() in listed().html()
