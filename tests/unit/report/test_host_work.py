"""The section about what the host did while the GPU was idle."""

from gpuviz.report.host_work import host_work_section
from tests.unit.recording.test_host_work import add_sample, program


def test_the_section_lists_the_work_with_the_most_idle_time_first():
    timeline = program()
    add_sample(timeline, 20_000, 90_000)
    add_sample(timeline, 120_000, 180_000, "collection", line=8)
    section = host_work_section(timeline.recording(), 0)
    first, second = (row.cells for row in section.parts[0].rows)

    assert section.tab == "Host 2"
    assert [first[2].text, first[3].text, second[3].text] == ["70.0 µs", "54 %", "46 %"]
    assert "garbage collection" in second[0].text


def test_without_samples_there_is_no_section():
    assert host_work_section(program().recording(), 0) is None
