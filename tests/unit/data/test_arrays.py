"""Conversions between Arrow and NumPy, compared with pyarrow's own."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuviz.data.arrays import array, batch_of, coded, empty, numbers, texts, values
from gpuviz.data.columns import codes, distinct, plain, rows_at
from gpuviz.data.derived import schemas as derived_schemas
from gpuviz.data.tables import schemas

KINDS = [pa.int8(), pa.uint8(), pa.int16(), pa.int32(), pa.uint32(), pa.int64(), pa.uint64()]
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)


def integers(kind):
    limits = np.iinfo(str(kind))
    return st.lists(st.integers(int(limits.min), int(limits.max)), max_size=20)


def of_kind(kind):
    """Values of a column of a recording."""
    if pa.types.is_list(kind):
        return st.lists(st.integers(0, 2**32 - 1), max_size=4)
    if pa.types.is_integer(kind):
        limits = np.iinfo(str(kind))
        return st.integers(int(limits.min), int(limits.max))
    return TEXT


@given(st.data())
def test_numbers_become_what_pyarrow_makes_of_them(data):
    kind = data.draw(st.sampled_from(KINDS))
    given_numbers = data.draw(integers(kind))
    unknown = np.array(data.draw(st.lists(st.booleans(), min_size=20)), bool)[: len(given_numbers)]
    converted = np.array(given_numbers, str(kind))

    assert numbers(given_numbers, kind).equals(pa.array(given_numbers, kind))
    assert numbers(converted, kind).equals(pa.array(converted, kind))
    masked = numbers(converted, kind, unknown=unknown)
    masked.validate(full=True)
    assert masked.equals(pa.array(converted, kind, mask=unknown))


@pytest.mark.parametrize(
    ("number", "kind"), [(-1, pa.uint32()), (300, pa.int8()), (2**31, pa.int32())]
)
def test_a_number_out_of_range_is_refused(number, kind):
    with pytest.raises(OverflowError):
        numbers(np.array([1, number]), kind)


@given(st.lists(TEXT, max_size=9))
def test_texts_become_what_pyarrow_makes_of_them(words):
    made = texts(words)

    made.validate(full=True)
    assert made.equals(pa.array(words, pa.utf8()))


@given(st.data())
def test_rows_of_every_table_become_what_pyarrow_makes_of_them(data):
    known = schemas() | derived_schemas()
    schema = known[data.draw(st.sampled_from(sorted(known)))]
    row = st.fixed_dictionaries({field.name: of_kind(field.type) for field in schema})
    rows = data.draw(st.lists(row, max_size=6))

    made = batch_of(rows, schema)

    made.validate(full=True)
    assert made.equals(pa.RecordBatch.from_pylist(rows, schema))
    assert empty(schema).equals(schema.empty_table())


@given(st.data())
def test_values_are_those_of_any_slice(data):
    kind = data.draw(st.sampled_from(KINDS))
    whole = pa.array(data.draw(integers(kind)), kind)
    start = data.draw(st.integers(0, len(whole)))
    part = whole.slice(start, data.draw(st.integers(0, len(whole))))

    found = values(part)

    assert found.dtype == np.dtype(str(kind))
    assert found.tolist() == part.to_pylist()
    assert not found.size or not found.flags.writeable


def test_nulls_have_no_value():
    with pytest.raises(pa.ArrowInvalid):
        values(pa.array([1, None], pa.int64()))


@given(st.data())
def test_chosen_rows_are_those_that_pyarrow_takes(data):
    schema = pa.schema(
        [
            ("id", pa.uint32()),
            ("kind", pa.dictionary(pa.int8(), pa.utf8())),
            ("name", pa.utf8()),
            ("unexpected", pa.list_(pa.int64())),
            ("sometimes", pa.int16()),
        ]
    )
    row = st.tuples(
        st.integers(0, 9),
        st.sampled_from("abc"),
        TEXT,
        st.none() | st.lists(st.integers(0, 3), max_size=2),
        st.none() | st.integers(-3, 3),
    )
    chunks = data.draw(st.lists(st.lists(row, min_size=1, max_size=4), min_size=1, max_size=3))
    table = pa.concat_tables(
        [
            pa.Table.from_pylist(
                [dict(zip(schema.names, each, strict=True)) for each in rows], schema
            )
            for rows in chunks
        ]
    )
    chosen = data.draw(st.lists(st.integers(0, table.num_rows - 1), max_size=6))

    found = rows_at(table, np.array(chosen, np.int64))

    found.validate(full=True)
    assert found.schema == schema
    assert found.to_pylist() == table.take(pa.array(chosen, pa.int64())).to_pylist()


@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=4), max_size=3))
def test_codes_are_positions_in_the_given_words(chunks):
    kind = pa.dictionary(pa.int8(), pa.utf8())
    column = pa.chunked_array([array(chunk, kind) for chunk in chunks], kind)

    found = codes(column, "cab")

    assert found.tolist() == ["cab".find(word) for chunk in chunks for word in chunk]
    known = coded(np.maximum(found, 0), ["c", "a", "b"])
    assert known.to_pylist() == ["cab"[max(code, 0)] for code in found.tolist()]
    assert plain(pa.chunked_array([], pa.int64())).tolist() == []


@given(st.sampled_from([(np.int16, 0), (np.uint64, 1 << 63)]), st.lists(st.integers(-3, 3)))
def test_distinct_values_are_those_of_a_set(kind, around):
    dtype, middle = kind
    numbers_of_rows = [middle + number for number in around]
    found = distinct(np.array(numbers_of_rows, dtype))

    assert found.tolist() == sorted(set(numbers_of_rows))
    assert found.dtype == dtype
