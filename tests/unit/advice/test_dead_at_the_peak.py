"""R45: arrays that nothing uses any more at the peak."""

from types import SimpleNamespace

import gpuviz
from gpuviz.advice.findings import findings
from tests.unit.advice import training
from tests.unit.advice.kept_arrays import deletes, keeps, made
from tests.unit.advice.programs import MIB, View, found, recorded, saved, within


def needs(gpu):
    image = gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[image])
    large = gpu.empty(64 * MIB)
    gpu.launch("enlarge", duration=1e-4, writes=[large])
    gpu.launch("compare", duration=1e-4, reads=[image, large])


def test_an_array_is_found_and_deleting_it_saves_what_was_predicted():
    (finding,) = found(keeps, "R45")

    assert finding.saved_bytes == finding.further_bytes == saved(keeps, deletes) == 32 * MIB
    assert finding.title == (
        "32.0 MiB from `image = gpu.empty(32 * MIB)` is still allocated at the peak, where nothing "
        "uses it any more."
    )
    assert finding.reason == (
        'Nothing uses the array after `gpu.launch("flatten", duration=1e-4, reads=[image], '
        "writes=[flat])`. The peak is reached by `large = gpu.empty(64 * MIB)`."
    )
    assert finding.change == (
        'Delete it (`del`) after `gpu.launch("flatten", duration=1e-4, reads=[image], '
        "writes=[flat])`."
    )
    assert [line.amount for line in finding.lines] == ["32.0 MiB in 1 array"]
    assert found(deletes, "R45") == []


def asks_for_the_size(gpu):
    image = gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[image])
    flat = gpu.empty(16 * MIB)
    gpu.launch("flatten", duration=1e-4, reads=[image], writes=[flat])
    large = gpu.empty(64 * MIB)
    gpu.launch("enlarge", duration=1e-4, reads=[flat], writes=[large])
    assert image.nbytes


def uses_the_name_again(gpu, *, whole=False):
    image = gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[image])
    flat = gpu.empty(16 * MIB)
    if whole:
        flat = image
    elif not whole:
        gpu.launch("flatten", duration=1e-4, reads=[image], writes=[flat])
    else:
        flat = image.nbytes
    large = gpu.empty(64 * MIB)
    image = large
    gpu.launch("enlarge", duration=1e-4, reads=[flat], writes=[image])


def test_a_later_line_that_asks_for_the_size_would_fail_without_the_variable():
    (finding,) = found(asks_for_the_size, "R45")

    assert finding.change.endswith(
        " `assert image.nbytes` still names `image`: take what it needs, such as the shape, before "
        "the `del`."
    )
    (other,) = found(uses_the_name_again, "R45")
    assert other.change.endswith("reads=[image], writes=[flat])`.")


def sharpened(gpu, image):
    sharp = gpu.empty(32 * MIB)
    gpu.launch("sharpen", duration=1e-4, reads=[image], writes=[sharp])
    return sharp


def keeps_a_result(gpu):
    for step in range(3):
        image = gpu.empty(16 * MIB)
        gpu.launch("make", duration=1e-4, writes=[image])
        large = gpu.empty((32 + step) * MIB)
        gpu.launch("enlarge", duration=1e-4, reads=[image], writes=[large])
        del large
        sharp = sharpened(gpu, image)
    del sharp


def deletes_the_result(gpu):
    for step in range(3):
        image = gpu.empty(16 * MIB)
        gpu.launch("make", duration=1e-4, writes=[image])
        large = gpu.empty((32 + step) * MIB)
        gpu.launch("enlarge", duration=1e-4, reads=[image], writes=[large])
        del large
        sharp = sharpened(gpu, image)
        del sharp


def keeps_a_result_in_an_object(gpu):
    image = gpu.empty(16 * MIB)
    gpu.launch("make", duration=1e-4, writes=[image])
    kept = SimpleNamespace(sharp=sharpened(gpu, image))
    large = gpu.empty(64 * MIB)
    gpu.launch("enlarge", duration=1e-4, reads=[image], writes=[large])
    del kept


def test_what_a_function_returns_is_deleted_where_it_is_returned_to():
    (finding,) = found(keeps_a_result, "R45")

    assert finding.change == "Delete `sharp` (`del`) after `sharp = sharpened(gpu, image)`."
    assert finding.saved_bytes == saved(keeps_a_result, deletes_the_result) == 32 * MIB
    assert found(deletes_the_result, "R45") == []


def test_a_returned_array_without_a_variable_is_only_said_to_be_deleted():
    (finding,) = found(keeps_a_result_in_an_object, "R45")

    assert finding.change == (
        "Delete it (`del`) after `kept = SimpleNamespace(sharp=sharpened(gpu, image))`."
    )


def test_the_evidence_is_the_allocation_and_a_time_around_the_peak():
    recording = recorded(keeps)
    (finding,) = found(keeps, "R45")
    row = recording.table("memory_events").slice(finding.evidence.rows[0], 1).to_pylist()[0]
    begin, end = finding.evidence.window

    assert (row["action"], row["size"]) == ("alloc", 32 * MIB)
    assert begin < end


def test_an_array_that_is_used_after_the_peak_is_needed():
    assert found(needs, "R45") == []


def test_an_array_that_the_recording_does_not_free_may_be_used_later():
    kept = []

    def program(gpu):
        image = gpu.empty(32 * MIB)
        gpu.launch("make", duration=1e-4, writes=[image])
        large = gpu.empty(64 * MIB)
        gpu.launch("enlarge", duration=1e-4, writes=[large])
        kept.append(image)

    assert found(program, "R45") == []


def test_an_array_that_another_stream_uses_must_outlive_its_work():
    def program(gpu):
        image = gpu.empty(32 * MIB)
        with gpu.Stream():
            gpu.launch("read", duration=1e-2, reads=[image])
        large = gpu.empty(64 * MIB)
        gpu.launch("enlarge", duration=1e-4, writes=[large])
        gpu.synchronize()

    assert found(program, "R45") == []


def test_a_kernel_whose_arrays_are_unknown_may_use_any():
    def program(gpu):
        image = gpu.empty(32 * MIB)
        gpu.launch("make", duration=1e-4, writes=[image])
        large = gpu.empty(64 * MIB)
        gpu.launch("enlarge", duration=1e-4, writes=[large])
        gpu.launch("by_pointers", duration=1e-4)

    assert found(program, "R45") == []


def test_what_can_only_be_freed_within_a_line_is_no_finding():
    def program(gpu):
        image = gpu.empty(32 * MIB)
        gpu.launch("make", duration=1e-4, writes=[image])
        large = (gpu.launch("read", duration=1e-4, reads=[image]), gpu.empty(64 * MIB))
        gpu.launch("enlarge", duration=1e-4, writes=[large[1]])

    assert found(program, "R45") == []


def test_a_loop_saves_only_if_it_saves_in_each_round():
    def program(gpu):
        for needed in (False, True):
            image = gpu.empty(32 * MIB)
            gpu.launch("make", duration=1e-4, writes=[image])
            large = gpu.empty(64 * MIB)
            gpu.launch("enlarge", duration=1e-4, writes=[large])
            if needed:
                gpu.launch("compare", duration=1e-4, reads=[image, large])
            del image, large

    assert found(program, "R45") == []


def test_without_streams_nothing_is_known():
    gpu = gpuviz.SimulatedGPU()
    with gpuviz.record(device=gpu, streams=False) as recorder:
        keeps(gpu)

    assert [each for each in recorder.recording.findings(small=True) if each.rule == "R45"] == []


def test_without_call_stacks_the_end_of_a_line_is_unknown():
    gpu = gpuviz.SimulatedGPU()
    with gpuviz.record(device=gpu, stacks=False) as recorder:
        keeps(gpu)
        gpu.synchronize()

    assert [each for each in recorder.recording.findings(small=True) if each.rule == "R45"] == []


def test_several_arrays_of_a_line_are_dropped_rather_than_deleted():
    def collects(gpu, *, keep=True):
        weights = gpu.empty(16 * MIB)
        gpu.launch("load", duration=1e-4, writes=[weights])
        kept = [step(gpu, weights) for _ in range(4)]
        if not keep:
            kept.clear()
        large = gpu.empty(64 * MIB)
        gpu.launch("enlarge", duration=1e-4, reads=[weights], writes=[large])

    def step(gpu, weights):
        result = gpu.empty(16 * MIB)
        gpu.launch("step", duration=1e-4, reads=[weights], writes=[result])
        return result

    (finding,) = found(collects, "R45")

    assert finding.saved_bytes == saved(collects, lambda gpu: collects(gpu, keep=False)) == 64 * MIB
    assert finding.change == (
        "Drop all references to them after `kept = [step(gpu, weights) for _ in range(4)]`: "
        "variables, attributes, and lists that collect them."
    )


def slices(gpu):
    image = made(gpu)
    gpu.launch("read", duration=1e-4, reads=[View(image)])
    large = gpu.empty(64 * MIB)
    gpu.launch("enlarge", duration=1e-4, writes=[large])


def test_views_keep_an_array_too():
    assert found(slices, "R45")[0].change.endswith("Views of it, such as slices, keep it too.")
    assert "Views" not in found(keeps, "R45")[0].change


def test_work_areas_of_plans_are_no_arrays_of_the_program():
    plan = "/env/lib/python3/site-packages/cupy/fft/_fft.py"
    recording = within(recorded(keeps), plan, source="plan = cufft.Plan1d(n, fft_type, batch)")

    assert [each.rule for each in findings(recorded(keeps)) if each.rule == "R45"] == ["R45"]
    assert [each.rule for each in findings(recording) if each.rule == "R45"] == []


def uses_in_a_loop(gpu):
    for _ in range(2):
        image = gpu.empty(32 * MIB)
        for _ in range(3):
            gpu.launch("filter", duration=1e-4, reads=[image], writes=[image])


def test_an_array_that_a_loop_uses_is_deleted_after_the_last_use():
    (finding,) = found(uses_in_a_loop, "R45")

    assert finding.change == (
        'Delete it (`del`) after its last use in `gpu.launch("filter", duration=1e-4, '
        "reads=[image], writes=[image])`."
    )


def correlates(gpu, *, pops):
    templates = [gpu.empty(32 * MIB) for _ in range(4)]
    gpu.launch("make", duration=1e-4, writes=templates)
    while pops and templates:
        template = templates.pop()
        product = gpu.empty(32 * MIB)
        gpu.launch("multiply", duration=1e-4, reads=[template], writes=[product])
        del template
        transformed = gpu.empty(32 * MIB)
        gpu.launch("transform", duration=1e-4, reads=[product], writes=[transformed])
        del product, transformed
    for template in templates:
        product = gpu.empty(32 * MIB)
        gpu.launch("multiply", duration=1e-4, reads=[template], writes=[product])
        transformed = gpu.empty(32 * MIB)
        gpu.launch("transform", duration=1e-4, reads=[product], writes=[transformed])
        del product, transformed


def test_an_array_is_removed_from_the_list_of_those_of_its_line():
    (finding,) = found(lambda gpu: correlates(gpu, pops=False), "R45")

    assert finding.saved_bytes == 32 * MIB
    assert finding.saved_bytes == saved(
        lambda gpu: correlates(gpu, pops=False), lambda gpu: correlates(gpu, pops=True)
    )
    assert finding.change == (
        'Delete it (`del`) after `gpu.launch("multiply", duration=1e-4, reads=[template], '
        "writes=[product])`. If a list keeps it with the 3 other arrays of its line, remove it "
        "there too (`pop`)."
    )


def trains(gpu, *, keeps):
    model = training.Model(gpu)
    for _ in range(3):
        x = gpu.empty(4 * MIB)
        output = model(x)
        if not keeps:
            output.value = None
        model.backward(output)
        del output, x


def test_an_output_is_deleted_before_its_backward_pass():
    (finding,) = training.found(lambda gpu: trains(gpu, keeps=True), "R45")

    assert "Nothing uses the array after the backward pass of `" in finding.reason
    assert finding.change == (
        "Delete it (`del`) before the backward pass begins, which keeps what it needs."
    )
    assert finding.saved_bytes == training.saved(
        lambda gpu: trains(gpu, keeps=True), lambda gpu: trains(gpu, keeps=False)
    )


def in_one_of_two_branches(gpu, *, whole=False):
    image = gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[image])
    flat = gpu.empty(16 * MIB)
    if not whole: gpu.launch("flatten", duration=1e-4, reads=[image], writes=[flat])  # fmt: skip # noqa: E701
    else: assert image.nbytes  # fmt: skip # noqa: E701
    large = gpu.empty(64 * MIB)
    gpu.launch("enlarge", duration=1e-4, reads=[flat], writes=[large])


def test_a_name_in_a_branch_beside_the_last_use_is_not_reached():
    (finding,) = found(in_one_of_two_branches, "R45")

    assert "still names" not in finding.change
