import builtins
import importlib
import inspect

import gpuviz

NAMES = [
    "Diff",
    "MemPool",
    "Recorder",
    "RecorderStatus",
    "Recording",
    "SimulatedGPU",
    "__version__",
    "allocators",
    "caching_allocator_alloc",
    "caching_allocator_delete",
    "dashboard",
    "diff",
    "empty_cache",
    "empty_host_cache",
    "get_allocator_settings",
    "get_per_process_memory_fraction",
    "graph",
    "holders",
    "host_memory_stats",
    "host_memory_stats_as_nested_dict",
    "leaks",
    "list_gpu_processes",
    "load",
    "malloc",
    "malloc_pinned",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_snapshot",
    "memory_stats",
    "memory_stats_as_nested_dict",
    "memory_summary",
    "name_stream",
    "range",
    "record",
    "record_stream",
    "release",
    "replay",
    "reset_accumulated_host_memory_stats",
    "reset_accumulated_memory_stats",
    "reset_peak_host_memory_stats",
    "reset_peak_memory_stats",
    "set_allocator_settings",
    "set_per_process_memory_fraction",
    "use_mem_pool",
]


def test_the_public_names_are_exactly_these():
    assert dir(gpuviz) == NAMES


def test_a_star_import_hides_no_builtin():
    assert sorted(gpuviz.__all__) == [name for name in NAMES if not hasattr(builtins, name)]


def test_dir_lists_every_public_name():
    assert set(NAMES) - set(dir(gpuviz)) == set()


def test_no_public_name_is_hidden_by_a_module_of_that_name():
    importlib.import_module("gpuviz.allocator.memory")
    importlib.import_module("gpuviz.commands.demo")

    modules = [name for name in NAMES if inspect.ismodule(getattr(gpuviz, name))]

    assert modules == ["allocators"]


def test_every_public_name_has_a_docstring():
    objects = [getattr(gpuviz, name) for name in NAMES if name != "__version__"]

    assert [item for item in objects if not inspect.getdoc(item)] == []


def test_every_public_method_has_a_docstring():
    classes = [item for item in (getattr(gpuviz, name) for name in NAMES) if inspect.isclass(item)]
    missing = [
        f"{item.__name__}.{name}"
        for item in classes
        for name, member in inspect.getmembers(item)
        if not name.startswith("_")
        and (inspect.isroutine(member) or isinstance(member, property))
        and not inspect.getdoc(member)
    ]

    assert missing == []


def test_an_unknown_name_is_an_attribute_error_that_names_it():
    try:
        gpuviz.no_such_name  # noqa: B018
    except AttributeError as error:
        message = str(error)

    assert "no_such_name" in message
