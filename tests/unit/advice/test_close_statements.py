"""The statements around a line, where strings go on in further lines."""

import pytest

from gpuviz.advice.source.close_statements import close_statements

SOURCE = '''
scale = cp.RawKernel(r"""
extern "C" __global__ void scale(float* x) { // It's (one
    for (int k = 0; k < 8; ++k) x[k] *= 2; }""", "scale")
text = f\'\'\'
while {1}: "
\'\'\'
def main(x):
    """Scale `x` (or (more."""
    for _ in range(8):
        scale((1,), (8,), (x,))
        if x.sum() > 3 and "\\"(" not in x.name:
            break
    return x
'''


def close(lines, number):
    frame = {"context": "\n".join(lines), "context_line": 1, "line": number, "source": ""}
    return close_statements(frame)


@pytest.mark.parametrize("cut", range(7))
def test_a_string_that_goes_on_is_one_statement_also_if_it_begins_before_the_text(cut):
    lines = SOURCE.strip().split("\n")[cut:]
    found = close(lines, len(lines) - 2)

    assert (found.line.keyword, found.line.head[:7], found.line.number) == (
        "if",
        "x.sum()",
        len(lines) - 2,
    )
    assert [each.keyword for each in found.of_round] == ["for", "", "if", ""]
    assert [each.keyword for each in found.statements][-6:] == ["", "for", "", "if", "", ""]


def test_the_text_of_a_long_string_is_left_out():
    found = close(SOURCE.strip().split("\n"), 10)

    assert found.statements[0].text == 'scale = cp.RawKernel(r""" """, "scale")'
    assert found.statements[1].text == "text = f''' '''"
