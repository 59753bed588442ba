import io
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from gpuviz.terminal import printable, write_line
from tests.examples import examples

TEXTS = st.text(st.characters())


@examples(200)
@given(text=TEXTS)
def test_a_printable_text_has_no_control_character_but_line_ends_and_tabs(text):
    shown = printable(text)

    assert {unicodedata.category(each) for each in shown if each not in "\n\t"} & {
        "Cc",
        "Cs",
        "Zl",
        "Zp",
    } == set()
    assert {unicodedata.bidirectional(each) for each in shown} & {
        *("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI")
    } == set()
    shown.encode()


@examples(200)
@given(text=TEXTS)
def test_escaping_twice_changes_nothing_more(text):
    assert printable(printable(text)) == printable(text)


def test_other_text_stays_as_it_is():
    text = "µs, naïve, 数据, 👩‍💻, 50 %\n\ttabs\\x1b"

    assert printable(text) == text


def test_escapes_are_those_of_python():
    assert printable("\x1b[2J\r\x9b\u202e\udcff") == r"\x1b[2J\r\x9b\u202e\udcff"


def test_a_line_for_a_stream_that_is_gone_is_lost():
    closed, stream = io.StringIO(), io.StringIO()
    closed.close()

    for each in (None, closed, stream):
        write_line(each, "a\x07b")

    assert stream.getvalue() == "a\\x07b\n"
