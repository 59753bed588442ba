"""R45: arrays that are made, used or kept by functions that the program calls."""

from tests.unit.advice.kept_arrays import made
from tests.unit.advice.programs import MIB, found, saved


def to_device(gpu, nbytes):
    array = gpu.empty(nbytes)
    gpu.copy_to_device(array)
    return array


def test_a_helper_gives_way_to_the_line_that_calls_it():
    def program(gpu):
        image = to_device(gpu, 32 * MIB)
        mask = to_device(gpu, 16 * MIB)
        gpu.launch("filter", duration=1e-4, reads=[image], writes=[mask])
        large = gpu.empty(64 * MIB)
        gpu.launch("enlarge", duration=1e-4, reads=[mask], writes=[large])

    (finding,) = found(program, "R45")

    assert finding.lines[0].source == "image = to_device(gpu, 32 * MIB)"
    assert finding.title.startswith("32.0 MiB from `image = to_device(gpu, 32 * MIB)` is still ")


def new_image(gpu):
    return gpu.empty(32 * MIB)


def loaded(gpu):
    return new_image(gpu)


def test_an_array_that_a_return_makes_has_the_line_that_names_it():
    def program(gpu):
        image = loaded(gpu)
        gpu.launch("load", duration=1e-4, writes=[image])
        mask = gpu.empty(16 * MIB)
        gpu.launch("filter", duration=1e-4, reads=[image], writes=[mask])
        large = gpu.empty(64 * MIB)
        gpu.launch("enlarge", duration=1e-4, reads=[mask], writes=[large])

    (finding,) = found(program, "R45")

    assert finding.lines[0].source == "image = loaded(gpu)"
    assert finding.title.startswith("32.0 MiB from `image = loaded(gpu)` is still ")


def run(gpu, kernel, reads, writes):
    gpu.launch(kernel, duration=1e-4, reads=reads, writes=writes)


def test_a_use_within_a_call_is_the_line_after_which_the_array_can_be_deleted():
    def program(gpu):
        image = gpu.empty(32 * MIB)
        flat = gpu.empty(16 * MIB)
        run(gpu, "flatten", [image], [flat])
        large = gpu.empty(64 * MIB)
        run(gpu, "enlarge", [flat], [large])

    (finding,) = found(program, "R45")

    assert finding.change == 'Delete it (`del`) after `run(gpu, "flatten", [image], [flat])`.'


def compute(gpu, nbytes):
    scratch = gpu.empty(nbytes)
    gpu.launch("compute", duration=1e-4, writes=[scratch])
    large = gpu.empty(2 * nbytes)
    gpu.launch("enlarge", duration=1e-4, writes=[large])
    return large


def test_a_function_keeps_the_arrays_that_it_uses_itself():
    def program(gpu):
        first = compute(gpu, 16 * MIB)
        gpu.launch("read", duration=1e-4, reads=[first])
        del first
        second = compute(gpu, 16 * MIB)
        gpu.launch("read", duration=1e-4, reads=[second])

    (finding,) = found(program, "R45")

    assert finding.lines[0].source == "scratch = gpu.empty(nbytes)"


def enlarged(gpu, image, *, deletes=False):
    flat = gpu.empty(16 * MIB)
    gpu.launch("flatten", duration=1e-4, reads=[image], writes=[flat])
    if deletes:
        del image
    large = gpu.empty(64 * MIB)
    gpu.launch("enlarge", duration=1e-4, reads=[flat], writes=[large])
    return large


def keeps_during_a_call(gpu):
    image = made(gpu)
    gpu.launch("show", duration=1e-4, reads=[enlarged(gpu, image)])


def deletes_after_the_call(gpu):
    image = made(gpu)
    large = enlarged(gpu, image)
    del image
    gpu.launch("show", duration=1e-4, reads=[large])


def hands_over(gpu):
    gpu.launch("show", duration=1e-4, reads=[enlarged(gpu, made(gpu), deletes=True)])


def test_what_a_call_still_holds_at_the_peak_is_deleted_within_it():
    (finding,) = found(keeps_during_a_call, "R45")

    assert saved(keeps_during_a_call, deletes_after_the_call) == 0
    assert finding.saved_bytes == saved(keeps_during_a_call, hands_over) == 32 * MIB
    assert finding.change == (
        'Delete it (`del`) after `gpu.launch("flatten", duration=1e-4, reads=[image], '
        'writes=[flat])`, within `gpu.launch("show", duration=1e-4, reads=[enlarged(gpu, image)])`.'
        " The caller must not keep it either, as in `f(make())`."
    )


def read(gpu, image):
    gpu.launch("read", duration=1e-4, reads=[image])
    return gpu.empty(64 * MIB)


def passes(gpu, image):
    return [gpu.launch("read", duration=1e-4, reads=[image]), 16]


def reads_and_enlarges_in_one_statement(gpu):
    image = made(gpu)
    gpu.launch("show", duration=1e-4, reads=[read(gpu, image)])


def is_used_in_a_return(gpu):
    image = made(gpu)
    gpu.launch("show", duration=1e-4, reads=[gpu.empty(4 * MIB * passes(gpu, image)[1])])


def test_within_a_statement_that_goes_on_to_the_peak_nothing_can_be_deleted():
    (finding,) = found(reads_and_enlarges_in_one_statement, "R45")
    assert "within" in finding.change

    def program(gpu):
        image = made(gpu)
        gpu.launch("show", duration=1e-4, reads=[read_later(gpu, gpu.launch("read", duration=1e-4, reads=[image]))])  # fmt: skip # noqa: E501

    def read_later(gpu, _):
        return gpu.empty(64 * MIB)

    assert [found(program, rule) for rule in ("R45", "R03")] == [[], []]


def test_an_array_that_a_return_uses_is_deleted_where_its_caller_is_split():
    (finding,) = found(is_used_in_a_return, "R45")

    assert finding.change.startswith(
        "Split the line, and delete the array (`del`) after the part that ends with `return "
    )


def halved(gpu, image, depth, *, deletes):
    """Work on an image at several scales, as a pyramid does."""
    size = image.nbytes
    if depth:
        half = gpu.empty(size // 2)
        gpu.launch("shrink", duration=1e-4, reads=[image], writes=[half])
        coarse = halved(gpu, half, depth - 1, deletes=deletes)
        if deletes:
            del half
    else:
        coarse = image
    result = gpu.empty(size)
    gpu.launch("enlarge", duration=1e-4, reads=[image, coarse], writes=[result])
    return result


def pyramid(gpu, *, deletes=False):
    image = gpu.empty(64 * MIB)
    gpu.launch("make", duration=1e-4, writes=[image])
    halved(gpu, image, 3, deletes=deletes)


def test_an_array_is_deleted_in_the_call_that_made_it_of_a_function_that_calls_itself():
    (finding,) = found(pyramid, "R45")

    assert finding.change == (
        "Delete it (`del`) after `coarse = halved(gpu, half, depth - 1, deletes=deletes)`."
    )
    assert finding.saved_bytes == saved(pyramid, lambda gpu: pyramid(gpu, deletes=True)) > 0


def blurred(gpu, image):
    blurry = gpu.empty(32 * MIB)
    gpu.launch("blur", duration=1e-4, reads=[image], writes=[blurry])
    large = gpu.empty(64 * MIB)
    gpu.launch("enlarge", duration=1e-4, reads=[blurry], writes=[large])
    return blurry


def replaces_its_argument(gpu):
    image = gpu.empty(32 * MIB)
    gpu.launch("make", duration=1e-4, writes=[image])
    image = blurred(gpu, image)
    gpu.launch("show", duration=1e-4, reads=[image])


def test_a_name_that_the_last_use_assigns_again_is_another_array_later():
    (finding, *_) = found(replaces_its_argument, "R45")

    assert "still names" not in finding.change
