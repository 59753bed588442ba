"""What kernels do with their pointers, by their PTX."""

from types import SimpleNamespace

import pytest

from gpuviz import _core
from gpuviz.data.tables import DICTIONARIES
from gpuviz.frameworks import numba_kernels
from gpuviz.frameworks.kernel_assembly import modes_by_entry

R, W, RW, U = "read", "write", "read_write", "unknown"
HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"


def kernel(body, parameters=3, name="k", kind=".u64"):
    declared = ",\n".join(f"\t.param {kind} {name}_param_{place}" for place in range(parameters))
    registers = "\t.reg .pred %p<9>;\n\t.reg .b64 %rd<99>;\n\t.reg .f32 %f<9>;\n"
    loads = "".join(
        f"\tld.param.u64 %rd{place}, [{name}_param_{place}];\n" for place in range(parameters)
    )
    head = f".visible .entry {name}(\n{declared}\n)\n.maxntid 128, 1, 1\n"
    return f"{head}{{\n{registers}{loads}{body}\tret;\n}}\n"


def modes(body, **options):
    pointers = options.pop("pointers", frozenset((0, 1)))
    (found,) = modes_by_entry(HEADER + kernel(body, **options), pointers).values()
    return found


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["ld.global.f32 %f1, [%rd0+4]", "st.global.f32 [%rd1], %f1"], (R, W, U)),
        (["ld.f32 %f1, [%rd0]", "@!%p1 st.f32 [%rd0+-4], %f1"], (RW, U, U)),
        (["atom.global.add.f32 %f1, [%rd0], %f2", "red.add.f32 [%rd1], %f2"], (RW, RW, U)),
        (["ld.global.v2.b64 {%rd8, %rd9}, [ %rd0 + 0 ]", "st.b64 [%rd9], %rd8"], (R, U, U)),
        # An index moves no pointer, and a loop carries one along.
        (
            [
                *("LOOP: add.s64 %rd5, %rd0, %rd2", "st.global.f32 [%rd5], %f1"),
                *("mov.u64 %rd0, %rd5", "@%p1 bra LOOP"),
            ],
            (W, U, U),
        ),
        (["add.s64 %rd7, %rd7, 4", "ld.f32 %f1, [%rd7]", "mov.u64 %rd7, %rd1"], (U, R, U)),
        # One of two: each may be read, but which is written is unknown.
        (["selp.b64 %rd5, %rd0, %rd1, %p1", "ld.global.f32 %f1, [%rd5]"], (R, R, U)),
        (["selp.b64 %rd5, %rd0, %rd1, %p1", "st.global.f32 [%rd5], %f1"], (U, U, U)),
        # Kept elsewhere, or passed on.
        (["st.local.b64 [%rd8], %rd0", "ld.global.f32 %f1, [%rd0]"], (U, U, U)),
        (["st.shared.f32 [%rd8], %f1", "ld.shared.f32 %f1, [%rd8]"], (U, U, U)),
        (
            ["st.param.b64 [param0+0], %rd0", "call.uni f, (param0)", "ld.f32 %f1, [%rd1]"],
            (U, R, U),
        ),
        (["mov.b64 %rd9, k_param_0", "ld.global.f32 %f1, [%rd0]"], (U, U, U)),
        (["cp.async.cg.shared.global [ %r1 + 0 ], [ %rd0 + 0 ], 0x10, %r3"], (R, U, U)),
        (["cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r1], %r2"], (U, W, U)),
        (["prefetch.global.L2 [%rd0]", "st.global.f32 [%rd0], %f1"], (W, U, U)),
        (["tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [%rd0, {%r1}]"], (U, U, U)),
        (["// st.f32 [%rd0], %f1;\n/* st.f32 [%rd1],\n%f1; */ add.s64 %rd3, %rd0, 1"], (U, U, U)),
    ],
)
def test_registers_are_followed_from_the_parameters(lines, expected):
    assert modes("".join(f"{line};\n" for line in lines)) == expected


def test_the_module_may_say_what_is_a_pointer():
    body = "cvta.to.global.u64 %rd5, %rd0;\nadd.s64 %rd6, %rd5, %rd1;\nst.global.f32 [%rd6], %f1;\n"

    assert modes(body, pointers=None) == (W, U, U)
    plain = "add.s64 %rd6, %rd0, %rd1;\nst.f32 [%rd6], %f1;\n"
    assert modes(plain, pointers=None) == (U, U, U)
    assert modes(plain, pointers=None, kind=".u64 .ptr .global .align 1") == (U, U, U)
    only = "st.global.f32 [%rd0], %f1;\n"
    assert modes(only, pointers=None, kind=".u64 .ptr .global .align 1") == (W, U, U)


def test_each_kernel_has_its_own():
    text = HEADER + "".join(
        kernel(body, name=name)
        for name, body in (
            ("a", "ld.global.f32 %f1, [%rd0];\n{ .reg .b32 %r1; }\nst.global.f32 [%rd1], %f1;\n"),
            ("b", "st.global.f32 [%rd0], %f1;\n"),
        )
    )

    assert modes_by_entry(text, frozenset((0, 1))) == {"a": (R, W, U), "b": (W, U, U)}
    assert modes_by_entry("no PTX at all {") == {}


class _Array:
    dtype = "float32"

    def __init__(self, ndim):
        self.ndim = ndim


def test_what_numba_has_compiled_is_declared_once(monkeypatch):
    declared = []
    monkeypatch.setattr(_core, "declare_kernel_modes", lambda *given: declared.append(given))
    monkeypatch.setattr(numba_kernels, "_declared", set())
    # A number, and arrays with one and two dimensions: their addresses are parameters 5 and 12.
    body = "ld.global.f32 %f1, [%rd5];\nst.global.f32 [%rd12], %f1;\n"
    text = HEADER + kernel(body, parameters=17, name="mine")
    known = SimpleNamespace(
        entry_name="mine",
        signature=SimpleNamespace(args=("float64", _Array(1), _Array(2))),
        _codelibrary=SimpleNamespace(_ptx_cache={(9, 0): [text]}),
    )
    complex_one = SimpleNamespace(**vars(known) | {"entry_name": "other"})
    complex_one.signature = SimpleNamespace(args=("complex64", _Array(1)))

    numba_kernels.declare_kernels([known, SimpleNamespace(), known, complex_one])

    names = DICTIONARIES["launch_blocks", "mode"]
    ((name, found),) = declared
    assert name == "mine"
    assert {place: names[mode] for place, mode in enumerate(found) if mode} == {5: R, 12: W}
