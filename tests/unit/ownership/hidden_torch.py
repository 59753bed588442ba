"""A module like torch, whose tensors refer to each other where Python cannot see it.

As in torch, a tensor in C++ has one object in Python, which it keeps while anything in C++ uses it,
and a storage that others may share.
"""

import contextlib
import ctypes
import itertools
from types import SimpleNamespace

ADDRESS = 0x7F0000000000
SIZE = 1 << 20

_python = ctypes.pythonapi
# No two tests have the same addresses.
_numbers = itertools.count(1)


def keep(value):
    """Return the id of an object that C++ refers to once more; Python counts all as one."""
    if not value.in_cpp:
        _python.Py_IncRef(ctypes.py_object(value))
    value.in_cpp += 1
    return id(value)


def _object(number):
    return ctypes.cast(number, ctypes.py_object).value if number else None


def drop(number):
    """Let C++ refer to an object, given by its id, once less."""
    value = _object(number)
    if value is not None:
        value.in_cpp -= 1
        if not value.in_cpp:
            _python.Py_DecRef(ctypes.py_object(value))


class Storages:
    """How many use each storage, by its number; its address follows from that."""

    def __init__(self):
        self.uses = {}

    def new(self):
        number = next(_numbers)
        self.uses[number] = 0
        return number

    def live(self):
        return [ADDRESS + number * SIZE for number, uses in self.uses.items() if uses]


class _Owner:
    """An object that refers to others in C++, in the attributes that `_hidden` names."""

    _hidden = ()
    in_cpp = 0

    def _set(self, name, value):
        drop(getattr(self, name, 0))
        setattr(self, name, 0 if value is None else keep(value))

    def __del__(self):
        for name in self._hidden:
            drop(getattr(self, name, 0))


class TensorBase(_Owner):
    """A tensor; attributes that a user sees are on this class, as in torch."""

    _hidden = ("_grad", "_node", "_of")

    def __init__(self, storages, storage=None, node=None, of=None):
        self._storages = storages
        self._storage = storages.new() if storage is None else storage
        storages.uses[self._storage] += 1
        self._set("_grad", None)
        self._set("_node", node)
        self._set("_of", of)

    def __del__(self):
        self._storages.uses[self._storage] -= 1
        super().__del__()

    def __mul__(self, _):
        return Tensor(self._storages, node=Node([], self._storages))

    def _use_count(self):
        return 1 + self.in_cpp

    def _is_view(self):
        return bool(self._of)

    is_leaf = property(lambda self: not self._node)
    retains_grad = property(lambda _: False)
    grad_fn = property(lambda self: _object(self._node))
    _base = property(lambda self: _object(self._of))
    grad = property(lambda self: _object(self._grad), lambda self, value: self._set("_grad", value))


class Tensor(TensorBase):
    """What a program uses; its own code must not run."""

    def __bool__(self):
        raise AssertionError

    __eq__ = __len__ = __bool__
    __hash__ = object.__hash__


class Saved:
    """A tensor that a node saves."""

    def __init__(self, tensor):
        self.data = tensor


class Node(_Owner):
    """A node of a graph of autograd, with the nodes after it and one saved tensor."""

    _hidden = ("_first", "_second", "_saved")

    def __init__(self, following, storages, saved=None):
        self._storages = storages
        for name, node in zip(("_first", "_second"), [*following, None, None], strict=False):
            self._set(name, node)
        self._set("_saved", saved)

    next_functions = property(
        lambda self: tuple((_object(each), 0) for each in (self._first, self._second) if each)
    )
    _raw_saved_result = property(lambda self: Saved(_object(self._saved)))


class AccumulateGrad(Node):
    """The end of a graph at a parameter."""

    _raw_saved_result = None
    variable = property(lambda self: _object(self._saved))


class StorageBase:
    """Storages in Python, of which there are none here."""


def fake_torch():
    """Return the module, with its storages."""
    storages = Storages()

    def snapshot():
        return [
            {
                "device": 0,
                "address": address,
                "total_size": SIZE,
                "active_size": SIZE,
                "allocated_size": SIZE,
                "blocks": [{"address": address, "size": SIZE, "state": "active_allocated"}],
            }
            for address in storages.live()
        ]

    return SimpleNamespace(
        storages=storages,
        enable_grad=contextlib.nullcontext,
        zeros=lambda *_, **__: Tensor(storages),
        cuda=SimpleNamespace(
            is_initialized=lambda: True,
            get_allocator_backend=lambda: "native",
            memory_snapshot=snapshot,
            empty_cache=lambda: None,
        ),
        _C=SimpleNamespace(
            TensorBase=TensorBase,
            StorageBase=StorageBase,
            DisableTorchFunction=contextlib.nullcontext,
            _data_address=lambda tensor: ADDRESS + tensor._storage * SIZE,
            _storage_address=lambda tensor: tensor._storage,
            _storage_Use_Count=lambda storage: storages.uses[storage],
        ),
    )
