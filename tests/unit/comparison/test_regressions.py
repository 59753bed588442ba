"""R39: what costs more than before, and because of what."""

import gpuviz
from tests.unit.comparison.test_diff import PROGRAM, recorded


def findings(after, before=PROGRAM):
    return gpuviz.diff(recorded(before), recorded(after)).findings


def test_nothing_costs_more_without_a_change():
    assert findings(PROGRAM) == ()


def test_a_higher_peak_is_the_line_that_holds_more():
    (finding,) = findings(PROGRAM.replace("empty(64", "empty(96"))

    assert finding.rule == "R39"
    assert finding.title == (
        "The peak is 32.0 MiB higher than before: `images = gpu.empty(96 << 20)` holds 32.0 MiB "
        "more."
    )
    assert finding.saved_bytes == 32 << 20
    assert finding.certainty == "certain"
    assert finding.lines[0].amount == "32.0 MiB more (edited)"


def test_a_lower_peak_costs_nothing():
    assert findings(PROGRAM.replace("empty(64", "empty(32")) == ()


def test_a_higher_peak_says_what_holds_less():
    (finding,) = findings(PROGRAM.replace("empty(64", "empty(96").replace("empty(8", "empty(4"))

    assert "1 line holds 32.0 MiB more than before, and others 4.00 MiB less" in finding.reason


def test_slower_kernels_are_likely_because_clocks_differ():
    (finding,) = findings(PROGRAM.replace("100e-6", "200e-6"))

    assert (finding.saved_ns, finding.certainty) == (2_000_000, "likely")
    assert finding.title == (
        "Kernels take 2.00 ms more than before: `blur` takes 2.00 ms more (slower)."
    )
    assert finding.reason.endswith(
        "`blur` took 2.00 ms in 20 launches, and takes 4.00 ms in 20 launches."
    )


def test_more_launches_are_likely_because_each_may_also_take_longer():
    (finding,) = findings(PROGRAM.replace("range(20)", "range(30)"))

    assert finding.certainty == "likely"
    assert finding.reason.endswith(
        "`blur` took 2.00 ms in 20 launches, and takes 3.00 ms in 30 launches."
    )


def test_a_kernel_that_was_not_there_before_is_certain():
    launch = '    gpu.launch("sharpen", reads=[images], duration=1e-3)\n'
    (finding,) = findings(PROGRAM + launch)

    assert finding.certainty == "certain"
    assert finding.title == (
        "Kernels take 1.00 ms more than before: `sharpen` takes 1.00 ms more (new)."
    )


def test_the_first_kernel_of_a_program_with_other_work_has_no_share_of_the_time_before():
    copies = """\
def work(gpu):
    images = gpu.empty(64 << 20)
    gpu.copy_to_device(images)
"""
    launch = '    gpu.launch("sharpen", reads=[images], duration=1e-3)\n'
    found = gpuviz.diff(recorded(copies), recorded(copies + launch))
    (finding,) = found.findings

    assert finding.reason == (
        "The kernels that changed take 1.00 ms more. `sharpen` takes 1.00 ms in 1 launch."
    )
    assert "sharpen" in found._repr_html_()


def test_without_activities_before_nothing_is_said_of_kernels():
    assert findings(PROGRAM, before="def work(gpu):\n    images = gpu.empty(72 << 20)\n") == ()


def test_time_within_the_noise_is_not_a_finding():
    assert findings(PROGRAM.replace("100e-6", "103e-6")) == ()


def test_a_comparison_with_gaps_is_not_certain():
    before = recorded(PROGRAM)
    after = recorded(PROGRAM.replace("empty(64", "empty(96"), name="other.py")
    other = gpuviz.Recording(
        {**after.tables, "activities": after.tables["activities"].slice(0, 0)}, after.manifest
    )

    (finding,) = gpuviz.diff(before, other).findings

    assert gpuviz.diff(before, other).notes
    assert finding.certainty == "likely"


COPIES = """\
def work(gpu):
    x = gpu.empty(64 << 20)
    for _ in range(10):
        gpu.launch("blur", writes=[x], duration=100e-6)
        gpu.copy_to_host(x, pinned=True)
    gpu.synchronize()
"""


def test_copies_that_lost_their_pinned_memory_say_so():
    (finding,) = findings(COPIES.replace("pinned=True", "pinned=False"), COPIES)

    assert finding.certainty == "likely"
    assert finding.title == (
        "Copies take 71.7 ms more than before: `gpu.copy_to_host(x, pinned=False)` copies pageable "
        "memory, which was pinned."
    )
    assert finding.reason == (
        "10 copies of 640 MiB reach 8.0 GB/s; before, those of pinned memory reach 55.0 GB/s."
    )


def test_more_copies_are_not_the_memory_s_fault():
    (finding,) = findings(COPIES.replace("range(10)", "range(20)"), COPIES)[1:]

    assert finding.title.endswith(": `gpu.copy_to_host(x, pinned=True)` takes 12.2 ms more.")


def test_more_memsets_name_their_line():
    (finding,) = findings(
        COPIES.replace("        gpu.launch", "        gpu.fill(x)\n        gpu.launch"), COPIES
    )

    assert finding.title == "10 memsets more than before: `gpu.fill(x)` makes 10."


def test_more_synchronizations_name_their_line_and_call():
    after = COPIES.replace("pinned=True)\n", "pinned=True)\n        gpu.synchronize()\n")
    (finding,) = findings(after, COPIES)

    assert finding.certainty == "certain"
    assert finding.title == (
        "10 synchronizations more than before: `gpu.synchronize()` calls `cuCtxSynchronize` 10 "
        "times more."
    )


def test_a_copy_that_waits_longer_than_it_copies_is_a_synchronization():
    before = COPIES.replace("    x =", "    value, x = gpu.empty(8),")
    after = before.replace("pinned=True)\n", "pinned=True)\n        gpu.copy_to_host(value)\n")
    (finding,) = findings(after, before)

    assert finding.title == (
        "10 synchronizations more than before: `gpu.copy_to_host(value)` calls "
        "`cuMemcpyDtoHAsync_v2` 10 times more."
    )
    assert finding.saved_ns < 1e6


def test_a_few_bytes_and_calls_that_take_no_time_are_no_cost():
    before = COPIES.replace("    x =", "    value = gpu.empty(8)\n    x =")
    small = before.replace("gpu.empty(8)", "gpu.empty(8), gpu.empty(8)")
    small = small.replace("    x =", "    gpu.fill(value[0])\n    gpu.synchronize()\n    x =")

    assert findings(small, before) == ()


def test_more_synchronizations_that_wait_less_in_all_are_no_cost():
    before = COPIES.replace("pinned=True)\n", "pinned=True)\n        gpu.synchronize()\n")
    wait = "        gpu.synchronize()\n"
    after = before.replace(wait, 2 * wait).replace("100e-6", "10e-6")

    assert [each.title for each in findings(after, before) if "synchroniz" in each.title] == []
