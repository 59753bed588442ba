import gpuviz
from gpuviz.frameworks.arrays import address_of
from gpuviz.notebook.holders import Holders


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
    names = {
        "x": Array(0x1000),
        "parts": [Array(0x1100), (Array(0x1180),)],
        "by_name": {"w": Array(0x1200), 3: Array(0x1280)},
        "Out": {5: Array(0x1300)},
        "_": Array(0x1300),
        "_5": Array(0x1300),
    }
    holders = Holders(names)

    found = holders.of(0x1000, 0x1000)
    assert found == ("x", "parts[0]", "parts[1][0]", "by_name['w']", "by_name[3]", "Out[5]")


def test_only_arrays_that_begin_in_the_block_hold_it():
    holders = Holders({"a": Array(999), "b": Array(1000), "c": Array(1511), "d": Array(1512)})

    assert holders.of(1000, 512) == ("b", "c")
    assert holders.of(5000, 512) == ()


def test_an_object_that_contains_itself_is_looked_into_once():
    loop = [Array(1000)]
    loop.append(loop)

    assert Holders({"loop": loop}).of(1000, 1) == ("loop[0]",)
