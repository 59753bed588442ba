"""The manifest: facts about a recording as a whole."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import UnionType
from typing import Any, get_origin

FORMAT = "gpuviz"
_ORDINAL_DIGITS = 5
VERSION = 1

# Of every number: that of a time in ns (146 years) can then be added to another one.
_LIMIT = 2**62

# In `Manifest.failures`: unlimited or unknown.
NOT_LIMITED = UNKNOWN = -1

# In `Manifest.memory_stats`: what JAX's allocator has from the driver.
POOL_BYTES = "jax_pool_bytes"

# What users call the modules whose version decides what a program allocates and launches.
LIBRARIES = {
    "torch": "PyTorch",
    "triton": "Triton",
    "jax": "JAX",
    "numba": "Numba",
    "numba_cuda": "numba-cuda",
    "rmm": "RMM",
    "warp": "Warp",
    "dask": "Dask",
}

# The `allocator_name` of a recording of torch's own allocator.
TORCH_ALLOCATOR = "PyTorch's caching allocator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Facts about a recording as a whole.

    Attributes:
        created: Wall-clock time of time 0, in ISO 8601.
        start_unix_ns: Time 0 in nanoseconds since 1970.
        start_monotonic_ns: Time 0 on the host's ``CLOCK_MONOTONIC``; 0 if unknown. Recordings with
            the same ``boot_id`` share that clock.
        host: Name of the host; empty if unknown.
        host_hash: Hash of the host name.
        boot_id: Linux's id of the host's last start.
        process_id: The recorded process.
        process_start_ns: Start of the process in ns since the host's start, to 10 ms; 0 if unknown.
            Process ids are reused, but not together with this time.
        launch: The ``rank`` of the process among those that a launcher such as ``torchrun`` or
            ``mpirun`` started together, and the number of ``ranks``, as far as they are known.
        duration_ns: Time from the start to the end of the recording.
        window_start_ns: Start of the window of a longer recording that this is; 0 if it is whole.
        window_end_ns: End of this window; 0 if it is whole.
        complete: Whether the recording was stopped properly.
        program: The command line.
        allocator: ``caching`` (gpuviz's own) or ``observe`` (the program's).
        libraries: Versions of the other GPU libraries that the program had imported, by the name
            of their module, such as ``torch``.
        torch_settings: Those of torch's own allocator, as the variable ``PYTORCH_CUDA_ALLOC_CONF``
            had them.
        hazards: Whether the hazards were asked for when the recording was made.
        forbid_default_stream: Whether work on the legacy default stream was asked for, to avoid it.
        simulated: Whether events come from a simulated device.
        label: A sentence shown with the recording; may be empty.
        events: Memory events recorded, without dropped ones.
        dropped: Events dropped because buffers were full.
        dropped_oldest: Events discarded to keep memory bounded.
        dropped_activities: Rows of activities and of CUDA calls that were dropped.
        dropped_oldest_activities: Such rows that were discarded to keep memory bounded.
        initial_events: Number of first rows of ``memory_events`` that describe existing memory.
        own_cost_ns: Overhead of the recording.
        costs: What recording one call costs the program beside what ``api_calls`` has as
            ``own_cost``, as a low and a high number of ns by kind: ``launch``, ``copy``,
            ``read_back`` (a copy to the host), ``event_record``, ``stream_wait``, ``synchronize``
            (and all others), ``graph_node`` (each kernel of a launched graph), and ``other_calls``
            (calls without a row, for each one with a row); ``graph_gap`` is how much later a kernel
            of a graph begins on the GPU after the one before; ``memory_event`` is that of a row of
            both tables of memory events, and ``launch_duration`` how long a recorded launch took
            when the costs were measured. Empty if unknown.
        memory_stats: The live allocator's final statistics, by device, and `POOL_BYTES`.
        failures: What the allocator reported about the first failed requests, by
            ``device:time``: bytes by name, -1 if unlimited or unknown.
        record_stream: The option of `gpuviz.record`.
        delayed_frees: The frees that it delayed, or would have delayed, as a list of objects by
            device: the ids of the call stacks of the allocation (``allocated``), free (``freed``)
            and last use (``used``), the handles of the memory's stream (``own_stream``) and of the
            other one (``stream``), ``frees``, ``bytes``, ``byte_seconds``.
        writes_after_free: The writes to freed memory that ``poison`` found, likewise: ``address``
            and ``size`` of the block, ``offset`` of the first changed byte found, its ``stream``,
            and the ids of the call stacks ``allocated``, ``freed`` and ``reused``.
        device_links: What joins each pair of CUDA devices, as a list of objects by device: the
            ``other`` one, which has a higher ordinal, ``access`` (1 if each can access the memory
            of the other one, else 0), ``native_atomics`` (likewise), ``performance_rank`` (0 is the
            fastest), ``nvlinks`` (active ones), and as NVML numbers them ``nvlink_version`` and
            ``pcie`` (the level of the common ancestor); -1 if unknown.
        notes: Sentences on missing or unusual data.
        tables: Rows of each table in the file; empty if unknown.
        derived_version: Version of the derived tables in the file; 0 if there are none.
        extra: Keys of newer versions, kept unchanged.
    """

    version: int = VERSION
    created: str = ""
    start_unix_ns: int = 0
    start_monotonic_ns: int = 0
    host: str = ""
    host_hash: str = ""
    boot_id: str = ""
    process_id: int = 0
    process_start_ns: int = 0
    launch: Mapping[str, int] = field(default_factory=dict)
    duration_ns: int = 0
    window_start_ns: int = 0
    window_end_ns: int = 0
    complete: bool = True
    gpuviz_version: str = ""
    python: str = ""
    platform: str = ""
    program: tuple[str, ...] = ()
    cupy: str = ""
    libraries: Mapping[str, str] = field(default_factory=dict)
    driver: str = ""
    runtime: str = ""
    allocator: str = "caching"
    allocator_name: str = ""
    settings: str = ""
    torch_settings: str = ""
    hazards: bool = False
    forbid_default_stream: bool = False
    simulated: bool = False
    label: str = ""
    events: int = 0
    dropped: int = 0
    dropped_oldest: int = 0
    dropped_activities: int = 0
    dropped_oldest_activities: int = 0
    initial_events: int = 0
    own_cost_ns: int = 0
    costs: Mapping[str, Any] = field(default_factory=dict)
    memory_stats: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    failures: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    record_stream: str = "off"
    delayed_frees: Mapping[str, Any] = field(default_factory=dict)
    writes_after_free: Mapping[str, Any] = field(default_factory=dict)
    device_links: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    tables: Mapping[str, int] = field(default_factory=dict)
    derived_version: int = 0
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def library_versions(self) -> dict[str, str]:
        """Versions of CuPy and the other known GPU libraries, by what users call them."""
        others = {title: self.libraries.get(name, "") for name, title in LIBRARIES.items()}
        return {title: text for title, text in {"CuPy": self.cupy, **others}.items() if text}

    def to_json(self, *, indent: int | None = 1) -> str:
        """Return the text of ``manifest.json``, on one line if ``indent`` is None."""
        known = {each.name: getattr(self, each.name) for each in fields(self)}
        extra = known.pop("extra")
        known["memory_stats"] = {str(key): stats for key, stats in self.memory_stats.items()}
        return json.dumps({"format": FORMAT} | known | extra, indent=indent)

    @classmethod
    def from_json(cls, text: str | bytes) -> "Manifest":
        """Parse ``manifest.json``; unknown keys are kept.

        Raises:
            ValueError: The text is not JSON, not a manifest, of a newer version, or a value has
                another type than expected.
        """
        values = _json_object(text)
        if values.pop("format", None) != FORMAT:
            raise ValueError(f'expected "format": "{FORMAT}"')
        _check_version(values.get("version"))
        known: dict[str, Any] = {}
        for each in fields(cls):
            if each.name in values and each.name != "extra":
                known[each.name] = _typed(each.name, each.type, values.pop(each.name))
        known["memory_stats"] = by_device(known.get("memory_stats", {}))
        _check_failures(known.get("failures", {}))
        for name, limits in _ROWS.items():
            _check_rows(name, known.get(name, {}), limits)
        _check_links(known.get("device_links", {}))
        _check_costs(known.get("costs", {}))
        return cls(**known, extra=values)


def _json_object(text: str | bytes) -> dict[str, Any]:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"expected JSON ({error})") from None
    if not isinstance(values, dict):
        raise ValueError(f"expected a JSON object, found {type(values).__name__}")  # noqa: TRY004
    return values


def _check_version(version: Any) -> None:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f'expected "version" to be a positive integer, found {version!r}')
    if version > VERSION:
        raise ValueError(
            f"the file has version {version}, but this gpuviz reads versions up to "
            f"{VERSION}; update gpuviz",
        )


def _typed(name: str, expected: Any, value: Any) -> Any:
    origin = get_origin(expected) or expected
    assert not isinstance(origin, UnionType)  # noqa: S101
    if origin is tuple:
        if isinstance(value, list) and all(isinstance(each, str) for each in value):
            return tuple(value)
        raise ValueError(f'expected "{name}" to be a list of strings, found {value!r}')
    if origin is Mapping:
        origin = dict
    if not isinstance(value, origin) or (origin is int and isinstance(value, bool)):
        raise ValueError(f'expected "{name}" to be of type {origin.__name__}, found {value!r}')
    if origin is int and not 0 <= value < _LIMIT:
        raise ValueError(f'expected "{name}" to be at least 0 and below 2**62, found {value}')
    if name == "tables" and not all(map(_is_integer, value.values())):
        raise ValueError('expected "tables" to give the number of rows of each table')
    if name == "libraries" and not all(isinstance(version, str) for version in value.values()):
        raise ValueError('expected "libraries" to give versions as strings by name')
    if name == "launch" and not all(map(_is_small_integer, value.values())):
        raise ValueError('expected "launch" to give integers below 2**31 by name')
    return value


def by_device(stats: dict[str, Any]) -> dict[int, dict[str, int]]:
    """Return statistics under ordinals instead of their texts.

    Raises:
        ValueError: They are none.
    """
    for device, values in stats.items():
        integers = isinstance(values, dict) and all(map(_is_integer, values.values()))
        if not (_is_ordinal(device) and integers):
            raise ValueError('expected "memory_stats" to give integers by device ordinal')
    return {int(device): values for device, values in stats.items()}


def _check_failures(failures: dict[str, Any]) -> None:
    for facts in failures.values():
        if not isinstance(facts, dict) or not all(map(_is_integer, facts.values())):
            raise ValueError('expected "failures" to give integers by name for each failure')


# Of the integers in rows by device: ids of call stacks, handles and addresses, and counts.
_ID, _HANDLE, _COUNT = 2**32, 2**64, _LIMIT
_ROWS = {
    "delayed_frees": {
        **dict.fromkeys(("allocated", "freed", "used"), _ID),
        **dict.fromkeys(("own_stream", "stream"), _HANDLE),
        **dict.fromkeys(("frees", "bytes"), _COUNT),
    },
    "writes_after_free": {
        **dict.fromkeys(("allocated", "freed", "reused"), _ID),
        **dict.fromkeys(("address", "stream"), _HANDLE),
        **dict.fromkeys(("size", "offset"), _COUNT),
    },
}
# Not an integer; `delayed_frees` has it.
_PRODUCT = "byte_seconds"


def _check_rows(name: str, devices: dict[str, Any], limits: dict[str, int]) -> None:
    for device, rows in devices.items():
        is_valid = _is_ordinal(device) and isinstance(rows, list)
        if not is_valid or not all(
            isinstance(row, dict)
            and all(_is_below(row.get(key), limit) for key, limit in limits.items())
            and (name != "delayed_frees" or _is_number(row.get(_PRODUCT)))
            for row in rows
        ):
            raise ValueError(f'expected "{name}" to give objects with numbers by device')


def _check_costs(costs: dict[str, Any]) -> None:
    for interval in costs.values():
        is_pair = isinstance(interval, list) and len(interval) == 2  # noqa: PLR2004
        if not is_pair or not all(map(_is_small_integer, interval)) or interval[0] > interval[1]:
            raise ValueError('expected "costs" to give a low and a high number of ns by kind')


_LINK = (
    *("other", "access", "native_atomics", "performance_rank", "nvlinks", "nvlink_version"),
    "pcie",
)


def _check_links(devices: dict[str, Any]) -> None:
    for device, rows in devices.items():
        is_valid = _is_ordinal(device) and isinstance(rows, list)
        if not is_valid or not all(
            isinstance(row, dict) and all(_is_small_integer(row.get(key)) for key in _LINK)
            for row in rows
        ):
            raise ValueError('expected "device_links" to give objects with integers by device')


def _is_ordinal(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _ORDINAL_DIGITS


def _is_integer(value: Any) -> bool:
    return type(value) is int and -_LIMIT < value < _LIMIT


def _is_below(value: Any, limit: int) -> bool:
    return type(value) is int and 0 <= value < limit


def _is_number(value: Any) -> bool:
    return type(value) in {int, float} and 0 <= value < 2**64


def _is_small_integer(value: Any) -> bool:
    return type(value) is int and UNKNOWN <= value < 2**31
