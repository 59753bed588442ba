import gpuviz
from gpuviz.ownership.array_names import ArrayNames, address_of
from tests.unit.ownership.held_objects import Hostile, HostileDict, HostileList, HostileMeta


class Array:
    """An array of any library that exposes its memory."""

    def __init__(self, address):
        self.__cuda_array_interface__ = {"data": (address, False), "shape": (1,), "version": 3}


class Exporting:
    """The same with a property, as in CuPy."""

    @property
    def __cuda_array_interface__(self):
        return {"data": (0x2000, False), "shape": (1,), "version": 3}


class Broken:
    """An array whose interface raises an exception."""

    @property
    def __cuda_array_interface__(self):
        raise RuntimeError("an array on a device that is gone")


class Dynamic:
    """An object that fails on access to an unknown attribute."""

    def __getattr__(self, name):
        raise AssertionError(f"{name} was asked for")


Array.__cuda_array_interface__ = None


def test_addresses_are_those_of_arrays_and_nothing_else_is_asked():
    gpu = gpuviz.SimulatedGPU(real_time=False)
    simulated = gpu.empty(512)

    assert address_of(Exporting()) == 0x2000
    assert address_of(simulated) == simulated.ptr
    assert [address_of(each) for each in (Broken(), Dynamic(), 7, None, Exporting)] == [0] * 5


def test_names_are_what_a_user_would_write():
    variables = {
        "x": Array(0x1000),
        "parts": [Array(0x1100), (Array(0x1180),)],
        "by_name": {"w": Array(0x1200), 3: Array(0x1280)},
        "Out": {5: Array(0x1300)},
        "_": Array(0x1300),
        "_5": Array(0x1300),
    }
    arrays = ArrayNames(variables)

    found = arrays.of(0x1000, 0x1000)
    assert found == ("x", "parts[0]", "parts[1][0]", "by_name['w']", "by_name[3]", "Out[5]")


def test_only_arrays_that_begin_in_the_block_hold_it():
    names = ArrayNames({"a": Array(999), "b": Array(1000), "c": Array(1511), "d": Array(1512)})

    assert names.of(1000, 512) == ("b", "c")
    assert names.of(5000, 512) == ()


def test_an_object_that_contains_itself_is_looked_into_once():
    loop = [Array(1000)]
    loop.append(loop)

    assert ArrayNames({"loop": loop}).of(1000, 1) == ("loop[0]",)


class HostileKey:
    """A key of a dict whose text must not be asked for."""

    def __repr__(self):
        raise AssertionError


def test_keys_are_written_as_in_python_unless_that_runs_their_code():
    keys = ["w", 3, 0.5, None, ("layer", 1), HostileKey()]

    found = ArrayNames({"x": dict.fromkeys(keys, Array(1000))}).of(1000, 1)

    texts = {"'w'", "3", "0.5", "None", "('layer', 1)", "a HostileKey"}
    assert {*found} == {f"x[{text}]" for text in texts}


def test_no_code_of_values_runs():
    hostile = type.__call__(HostileMeta, "Kind", (), {})
    hostile_object = type.__call__(hostile)
    names = ArrayNames(
        {
            "a": hostile,
            "b": hostile_object,
            "c": Hostile(Array(1000)),
            "d": HostileList([Array(1001)]),
            "e": HostileDict(w=Array(1002)),
            "f": Dynamic(),
        }
    )

    assert names.of(1000, 3) == ("d[0]", "e['w']")


def test_local_variables_of_the_last_error_are_named_and_kept_by_nothing_else():
    def fail(array):
        raise KeyError(array.ptr)

    gpu = gpuviz.SimulatedGPU(real_time=False)
    try:
        fail(gpu.empty(512))
    except KeyError as error:
        kept = error

    found = ArrayNames(globals(), kept).of(kept.args[0], 512)

    assert found == ("array of fail() in the last traceback",)
    kept.__traceback__.tb_next.tb_frame.clear()
    assert gpu.memory_stats()["allocated_bytes.all.current"] == 0
