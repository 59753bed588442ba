"""R04: arrays that a notebook keeps although its later cells do not use them."""

import re

MIB = 1 << 20
START = "%gpuviz start --simulated gpu"
MAKE = "gpu.launch('make', duration=1e-4, writes=[{0}])"
BETWEEN = "y = gpu.empty(4 << 20)\ngpu.launch('other', duration=1e-4, writes=[y])"
LARGE = "z = gpu.empty(64 << 20)\ngpu.launch('large', duration=1e-4, writes=[z])"


def kept(shell, *cells):
    """Return what R04 finds after these cells."""
    shell.run(START)
    for cell in cells:
        ran = shell.run(cell)
        assert ran.result.success, ran.stderr
    recording = shell.run("%gpuviz stop").result.result
    return recording, [each for each in recording.findings(small=True) if each.rule == "R04"]


def test_a_variable_that_no_later_cell_uses_is_found_and_deleting_it_saves_that(shell):
    first = f"x = gpu.empty(32 << 20)\n{MAKE.format('x')}"
    recording, (finding,) = kept(shell, first, BETWEEN, BETWEEN, LARGE)
    shell.run("del x, y, z")
    shell.names["_oh"].clear()
    deleted, nothing = kept(shell, first, "del x", BETWEEN, BETWEEN, LARGE)

    assert finding.saved_bytes == recording.peak().bytes - deleted.peak().bytes == 32 * MIB
    assert finding.title == (
        "The notebook keeps 32.0 MiB from `x = gpu.empty(32 << 20)`, which its last 3 cells did "
        "not use."
    )
    assert finding.change.startswith("Delete it (`del x`) after ")
    assert finding.certainty == "possible"
    assert nothing == []


def test_a_displayed_array_is_kept_by_the_outputs(shell):
    make = "gpu.empty(32 << 20)"
    _, (finding,) = kept(shell, make, f"{MAKE.format('_')}", BETWEEN, BETWEEN, LARGE)

    assert finding.certainty == "likely"
    assert "`Out` keeps it if the cell displayed it" in finding.change


def test_an_array_that_a_later_cell_uses_or_that_is_new_is_not_found(shell):
    first = f"x = gpu.empty(32 << 20)\n{MAKE.format('x')}"
    use = "gpu.launch('use', duration=1e-4, reads=[x])"

    assert kept(shell, first, BETWEEN, BETWEEN, LARGE, use)[1] == []
    shell.run("del x, y, z")
    shell.names["_oh"].clear()
    assert kept(shell, first, LARGE)[1] == []


def test_what_keeps_memory_and_what_grows_are_shown_together(shell):
    shell.run(f"{START}\nkept = []")
    for _ in range(8):
        shell.run(f"kept.append(gpu.empty(2 << 20))\n{MAKE.format('kept[-1]')}")

    shown = shell.run("%gpuviz leaks").text

    assert re.search(r"16\.0 MiB.* kept", shown)
    assert re.search(r"kept\.append.* keeps 2\.00 MiB more with each run of its cell", shown)
    shell.run("%gpuviz stop")


def test_a_cell_that_ran_again_is_one_line_of_what_is_held_for_too_long(shell):
    cell = f"m = gpu.empty(24 << 20)\n{MAKE.format('m')}\ngpu.copy_to_host(m)"
    recording, _ = kept(shell, *[cell] * 4)

    (finding,) = (each for each in recording.findings() if each.rule == "R03")

    assert finding.title == "48.0 MiB from one line is allocated for longer than it is used."
    assert finding.change == (
        "`m = gpu.empty(24 << 20)`: delete it (`del`) after `gpu.copy_to_host(m)`."
    )
