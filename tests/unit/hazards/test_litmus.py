import json
import lzma
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.litmus import oracle, simulated
from tests.litmus.__main__ import main
from tests.litmus.comparison import differences, subtract
from tests.litmus.engine import judge
from tests.litmus.fuzz import disagreements
from tests.litmus.program import program, programs, read
from tests.litmus.random_host_programs import random_host_program
from tests.litmus.random_programs import random_program

FILE = Path(__file__).parents[2] / "litmus" / "data" / "litmus.json.xz"
PROGRAMS = read(FILE)
RACE = {
    "name": "race",
    "streams": {"s1": "non_blocking", "s2": "non_blocking"},
    "blocks": {"A": 64},
    "ops": [
        {"op": "launch", "id": "write", "stream": "s1", "writes": ["A"]},
        {"op": "launch", "id": "read", "stream": "s2", "reads": ["A"]},
    ],
    "hazards": [
        {
            "kind": "RAW",
            "first": "write",
            "second": "read",
            "block": "A",
            "tier": "certain",
            "bytes": [[0, 64]],
        }
    ],
}


@pytest.mark.parametrize("judged", PROGRAMS, ids=lambda each: each.name)
def test_the_engine_judges_a_litmus_program_as_the_specification_does(judged):
    found = judge(judged)

    assert differences(found, judged.hazards, judged.also) == []


@pytest.mark.parametrize("judged", PROGRAMS, ids=lambda each: each.name)
def test_the_oracle_judges_a_litmus_program_as_the_specification_does(judged):
    required, possible = oracle.judge(judged)

    assert differences([*required, *possible], judged.hazards, judged.also) == []


@given(st.integers(0, 2**40))
def test_the_engine_agrees_with_the_oracle_on_a_random_program(seed):
    assert disagreements(random_program(seed)) == []


@given(st.integers(0, 2**40))
def test_a_recording_in_which_the_host_uses_pinned_memory_is_judged_as_the_oracle_does(seed):
    judged = program(random_host_program(seed))
    required, possible = oracle.judge(judged)

    found = simulated.judge(judged)
    expected, allowed = (
        {(each.kind, each.first, each.second) for each in hazards}
        for hazards in (required, [*required, *possible])
    )
    assert expected <= found <= allowed


WRITE = {"op": "launch", "id": "write", "stream": "s1", "writes": ["A"]}
READ = {"op": "launch", "id": "read", "stream": "s2", "reads": ["A"]}
SIGNAL = {"op": "write_value", "stream": "s1", "address": "flag"}
AWAIT = {"op": "wait_value", "stream": "s2", "address": "flag"}


@pytest.mark.parametrize(
    ("operations", "kinds"),
    [
        ([WRITE, SIGNAL, AWAIT, READ], []),
        ([WRITE, AWAIT, SIGNAL, READ], []),
        ([AWAIT, WRITE, SIGNAL, READ], []),
        ([AWAIT, READ, WRITE, SIGNAL], []),
        ([WRITE, AWAIT, READ], []),
        ([AWAIT, READ, WRITE], ["WAR"]),
        ([AWAIT, READ, SIGNAL, WRITE], ["WAR"]),
        ([READ, AWAIT, WRITE, SIGNAL], ["WAR"]),
        ([WRITE, SIGNAL, READ, AWAIT], ["RAW"]),
    ],
)
def test_a_value_orders_streams_also_if_it_is_awaited_before_it_is_written(operations, kinds):
    judged = program(RACE | {"ops": operations, "hazards": []})
    required, possible = oracle.judge(judged)

    assert [each.kind for each in judge(judged)] == kinds
    assert [each.kind for each in [*required, *possible]] == kinds


def test_the_command_passes_only_if_every_program_is_right(tmp_path, capsys):
    right, wrong = tmp_path / "right.json", tmp_path / "wrong.json"
    right.write_text(json.dumps({"format": 1, "programs": [RACE]}))
    wrong.write_text(json.dumps({"format": 1, "programs": [RACE, {**RACE, "hazards": []}]}))

    assert main([str(right)]) == 0
    assert main([str(right), str(wrong)]) == 1
    assert main([]) == 2
    assert "wrong: RAW write -> read in A certain [0-64]" in capsys.readouterr().out


def test_a_report_must_contain_what_is_expected_and_nothing_else():
    (expected,) = program(RACE).hazards
    partial = type(expected)(**{**vars(expected), "bytes": ((0, 10), (20, 64))})

    assert differences([expected], [], [expected]) == []
    assert differences([expected], [expected], []) == []
    assert differences([partial], [expected], []) == [
        "missing: RAW write -> read in A certain [10-20]"
    ]
    assert differences([expected], [partial], []) == [
        "wrong: RAW write -> read in A certain [10-20]"
    ]


def test_bytes_are_subtracted():
    assert subtract([(0, 10), (20, 30)], [(5, 25)]) == [(0, 5), (25, 30)]
    assert subtract([(0, 10)], [(2, 3), (5, 6)]) == [(0, 2), (3, 5), (6, 10)]
    assert subtract([(0, 10)], [(0, 10)]) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"ops": [{"op": "lunch"}]}, "operation 0 is unknown: 'lunch'"),
        ({"ops": [{"op": "launch", "stream": "s1"}]}, "operation 0, launch: id is missing"),
        ({"ops": [{"op": "free", "id": "f", "block": 3}]}, "free: block is not a name: 3"),
        ({"ops": [{"op": "memset", "id": "m", "destination": "A"}]}, "either stream or sync"),
        (
            {"ops": [{"op": "launch", "id": "k", "stream": "s1", "reads": [["A", 4, 2]]}]},
            "stops before it starts",
        ),
        ({"ops": 5}, "ops is not a list"),
        ({"blocks": {"A": 0}}, "size of block 'A' is 0"),
        ({"streams": {"s1": "lazy"}}, "unknown kind of stream 'lazy'"),
        ({"options": {"strict": True}}, "unknown option 'strict'"),
        ({"hazards": [{"kind": "RAW"}]}, "a hazard is incomplete"),
        ({"comment": ""}, "unknown field 'comment'"),
    ],
)
def test_a_malformed_program_is_rejected_with_its_part(change, text):
    with pytest.raises(ValueError, match="program race: ") as error:
        programs({"format": 1, "programs": [RACE | change]})

    assert text in str(error.value)


@pytest.mark.parametrize(
    ("operation", "text"),
    [
        ({"op": "launch", "id": "write", "stream": "s1"}, "the id 'write' is used twice"),
        ({"op": "launch", "id": "k", "stream": "s9"}, "'s9' does not exist"),
        ({"op": "launch", "id": "k", "stream": "s1", "reads": ["Z"]}, "'Z' does not exist"),
        ({"op": "launch", "id": "k", "stream": "s1", "reads": [["A", 0, 65]]}, "of 64 bytes"),
        ({"op": "end_capture", "stream": "s1", "graph": "g"}, "no capture began"),
        ({"op": "stream_create", "stream": "s1", "kind": "blocking"}, "exists already"),
        ({"op": "cuda_malloc", "block": "A", "bytes": 8}, "exists already"),
        ({"op": "cuda_malloc", "block": "B", "bytes": 8, "reuses": "A"}, "belongs to another"),
    ],
)
def test_an_operation_on_what_does_not_exist_is_an_error(operation, text):
    judged = program(RACE | {"ops": [*RACE["ops"], operation]})

    with pytest.raises(ValueError, match="program race: operation 2") as error:
        judge(judged)

    assert text in str(error.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b'{"format": 2}', b"\xff\xfe", b"[" * 100_000, b'{"format": 1, "programs": 1}'],
)
def test_a_file_that_holds_no_programs_is_an_error_that_names_it(tmp_path, content, capsys):
    plain, packed = tmp_path / "p.json", tmp_path / "p.json.xz"
    plain.write_bytes(content)
    packed.write_bytes(lzma.compress(content)[:-5])

    for path in (plain, packed):
        assert main([str(path)]) == 1
        assert str(path) in capsys.readouterr().err


@given(st.data())
def test_a_damaged_program_is_judged_or_rejected(data):
    value = random_program(data.draw(st.integers(0, 1000)))
    target, key = data.draw(st.sampled_from(list(_places(value))))
    target[key] = data.draw(
        st.sampled_from([None, -1, 3, 2**70, "", "legacy", "A2", [], {}, [[]], 1e300])
    )

    try:
        judge(program(value))
    except ValueError as error:
        assert str(error)  # noqa: PT017 - any other exception fails


def _places(value):
    keys = value if isinstance(value, dict) else range(len(value))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


RUNNABLE = [each for each in PROGRAMS if simulated.can_run(each)]


def test_most_programs_without_graphs_run_on_the_simulated_gpu():
    assert len(RUNNABLE) >= 40


@pytest.mark.parametrize("judged", RUNNABLE, ids=lambda each: each.name)
def test_the_recording_of_a_litmus_program_is_judged_as_the_specification_does(judged):
    found = simulated.judge(judged)

    expected = {(each.kind, each.first, each.second) for each in judged.hazards}
    allowed = expected | {(each.kind, each.first, each.second) for each in judged.also}
    assert expected <= found <= allowed
