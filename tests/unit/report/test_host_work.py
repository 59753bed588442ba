"""The section about what the host did while the GPU was idle."""

from gpuviz.report.host_work import host_work_section
from tests.unit.recording.test_host_work import add_sample, program


def test_the_section_lists_the_work_with_the_most_idle_time_first():
    timeline = program()
    add_sample(timeline, 20_000, 90_000)
    add_sample(timeline, 120_000, 180_000, "collection", line=8)
    text = host_work_section(timeline.recording(), 0)

    assert 'data-panel="host" data-title="Host 2"' in text
    assert text.index("70.0 µs") < text.index("garbage collection")
    assert "54 %" in text
    assert "46 %" in text


def test_without_samples_there_is_no_section():
    assert host_work_section(program().recording(), 0) == ""
