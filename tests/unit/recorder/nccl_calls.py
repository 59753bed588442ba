"""NCCL's side of its profiler interface, versions 4 to 6, as calls of `gpuviz._core`'s plugin."""

import ctypes
from ctypes import POINTER, c_bool, c_char_p, c_int, c_size_t, c_uint8, c_uint64, c_void_p

from gpuviz import _core

COLLECTIVE, PEER, COLLECTIVE_CALL, PEER_CALL, GROUP_CALL = 1 << 1, 1 << 2, 1 << 9, 1 << 10, 1 << 8


class Collective(ctypes.Structure):
    """A collective that NCCL enqueues."""

    _fields_ = (
        ("seqNumber", c_uint64),
        ("func", c_char_p),
        ("sendBuff", c_void_p),
        ("recvBuff", c_void_p),
        ("count", c_size_t),
        ("root", c_int),
        ("datatype", c_char_p),
        ("nChannels", c_uint8),
        ("nWarps", c_uint8),
        ("algo", c_char_p),
        ("proto", c_char_p),
        ("parentGroup", c_void_p),
    )


class Peer(ctypes.Structure):
    """One side of a transfer between two ranks."""

    _fields_ = (
        ("func", c_char_p),
        ("buff", c_void_p),
        ("datatype", c_char_p),
        ("count", c_size_t),
        ("peer", c_int),
        ("nChannels", c_uint8),
        ("parentGroup", c_void_p),
    )


class CollectiveCall(ctypes.Structure):
    """A call of a collective."""

    _fields_ = (
        ("func", c_char_p),
        ("count", c_size_t),
        ("datatype", c_char_p),
        ("root", c_int),
        ("stream", c_void_p),
        ("graphCaptured", c_bool),
    )


class PeerCall(ctypes.Structure):
    """A call of a send or receive."""

    _fields_ = (
        ("func", c_char_p),
        ("count", c_size_t),
        ("datatype", c_char_p),
        ("stream", c_void_p),
        ("graphCaptured", c_bool),
    )


class Details(ctypes.Union):
    """What an event of one of these kinds is about."""

    _fields_ = (
        ("collective", Collective),
        ("peer", Peer),
        ("collective_call", CollectiveCall),
        ("peer_call", PeerCall),
    )


def event_type(number: type) -> type[ctypes.Structure]:
    """Return the type of events whose kind is a number of this type."""

    class Event(ctypes.Structure):
        """An event."""

        _fields_ = (
            ("type", number),
            ("parentObj", c_void_p),
            ("rank", c_int),
            ("details", Details),
        )

    return Event


class Plugin(ctypes.Structure):
    """The functions of a plugin."""

    _fields_ = (
        ("name", c_char_p),
        ("init", c_void_p),
        ("startEvent", c_void_p),
        ("stopEvent", c_void_p),
        ("recordEventState", c_void_p),
        ("finalize", c_void_p),
    )


class Communicator:
    """A communicator of NCCL that reports to the plugin of a version."""

    def __init__(self, version: int, number: int, ranks: int, rank: int) -> None:
        library = ctypes.CDLL(_core.__file__)
        self._plugin = Plugin.in_dll(library, f"ncclProfiler_v{version}")
        self._event = event_type(c_uint8 if version == 4 else c_uint64)
        self._context, mask = c_void_p(), c_int()
        context, wanted = ctypes.byref(self._context), ctypes.byref(mask)
        identity = (c_uint64(number), wanted, b"name")
        if version == 4:
            identity = (wanted, b"name", c_uint64(number))
        result = ctypes.CFUNCTYPE(c_int, *(c_void_p,) * 8)(self._plugin.init)(
            context, *map(as_pointer, identity), 1, ranks, rank, None
        )
        assert result == 0
        self.mask = mask.value

    def start(self, kind: int, details: ctypes.Structure, parent: int | None = None) -> int | None:
        """Start an event, and return its handle."""
        fields = {Collective: "collective", Peer: "peer"} | {
            CollectiveCall: "collective_call",
            PeerCall: "peer_call",
        }
        event = self._event(type=kind, parentObj=parent, rank=0)
        setattr(event.details, fields[type(details)], details)
        handle = c_void_p(1234)
        function = ctypes.CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p), c_void_p)
        started = function(self._plugin.startEvent)(
            self._context, ctypes.byref(handle), ctypes.addressof(event)
        )
        assert started == 0
        return handle.value

    def stop(self, handle: int | None) -> None:
        """Stop an event."""
        assert ctypes.CFUNCTYPE(c_int, c_void_p)(self._plugin.stopEvent)(handle) == 0

    def finalize(self) -> None:
        """End the communicator."""
        assert ctypes.CFUNCTYPE(c_int, c_void_p)(self._plugin.finalize)(self._context) == 0


def as_pointer(argument: object) -> object:
    """Return an argument of a call whose parameters are declared as pointers."""
    if isinstance(argument, c_uint64):
        return c_void_p(argument.value)
    if isinstance(argument, bytes):
        return ctypes.cast(ctypes.c_char_p(argument), c_void_p)
    return ctypes.cast(argument, c_void_p)
