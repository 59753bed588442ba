"""Whether the saving of a finding came true."""

from gpuviz.comparison.followed import followed_text, outcomes
from tests.unit.advice.kept_arrays import deletes, keeps
from tests.unit.advice.timed_programs import timed
from tests.unit.advice.waiting_programs import never_waits, reads_a_scalar


def first(recording, rule):
    return next(each for each in recording.findings(small=True) if each.rule == rule)


def test_bytes_that_were_saved_as_predicted():
    before, after = timed(keeps), timed(deletes)
    text = followed_text(before, after, first(before, "R45"), after.findings(small=True))

    assert "   Peak of allocated bytes: 32.0 MiB predicted, 32.0 MiB saved (" in text
    assert text.endswith(": as predicted.\n   The second recording no longer has this finding.")


def test_time_that_was_saved_as_predicted():
    before, after = timed(reads_a_scalar), timed(never_waits)
    (found,) = outcomes(before, after, first(before, "R18"))

    assert found.name == "Time from first launch to last work"
    assert abs(found.saved - found.predicted) < 0.2 * found.predicted
    assert str(found).endswith(": as predicted.")


def test_a_finding_that_was_not_followed_is_still_there():
    before = timed(reads_a_scalar)
    finding = first(before, "R18")
    text = followed_text(before, timed(reads_a_scalar), finding, before.findings(small=True))

    assert "0 ns saved" in text
    assert ": nothing was saved.\n   The second recording still has it. It would save " in text


def test_without_work_in_the_second_recording_nothing_is_compared():
    before, after = timed(reads_a_scalar), timed(lambda _: None)

    assert "Nothing that it saves can be compared" in followed_text(
        before, after, first(before, "R18"), ()
    )
