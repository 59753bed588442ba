"""What findings predict, and what following them saves; see `tests.gpu.measured_findings`.

Needs a GPU with CuPy.
"""

from collections.abc import Iterator

from tests.gpu import measured_findings

Row = tuple[str, str, str, bool]

NEEDS_GPU = True
MIB = 1 << 20


def rows() -> Iterator[Row]:
    """Measure all programs; yield a row for each prediction, or for a program without a fault."""
    for judged in measured_findings.judgements():
        if judged.chosen is None:
            found = "right" if judged.is_right else "wrong"
            yield judged.name, "right", found, judged.is_right
            continue
        what = f"{judged.name}, {judged.chosen.rule}"
        if judged.chosen.saved_bytes:
            predicted, measured = judged.chosen.saved_bytes / MIB, judged.saved_bytes / MIB
            yield _row(what, predicted, measured, "MiB")
        if judged.chosen.saved_ns:
            yield _row(what, judged.chosen.saved_ns / 1e6, 1e3 * judged.saved_s, "ms")


def _row(what: str, predicted: float, measured: float, unit: str) -> Row:
    is_near = abs(predicted - measured) <= measured_findings.NEAR * abs(measured)
    text = f"{predicted:.2f} {unit} predicted, {measured:.2f} {unit} measured"
    return what, f"within {100 * measured_findings.NEAR:.0f} %", text, is_near
