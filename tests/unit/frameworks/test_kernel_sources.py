"""What the source of a kernel says about its pointers."""

import pytest

from gpuviz.frameworks.kernel_sources import (
    agreed,
    elements_by_kernel,
    modes_by_kernel,
    modes_of_operation,
)

LETTERS = {"read": "r", "write": "w", "read_write": "+", "unknown": "?"}


def modes(source: str) -> str:
    (found,) = modes_by_kernel(source).values()
    return "".join(LETTERS[mode] for mode in found)


def kernel(parameters: str, body: str) -> str:
    return f'extern "C" __global__ void k({parameters}) {{ int i = threadIdx.x; {body} }}'


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("p[i] = 1;", "w"),
        ("if (i) p[i] = 1; else p[i] = 2;", "w"),
        ("p[q[i]] = q[p[i]];", "+"),
        ("float x = p[i]; x = 2;", "r"),
        ("p[i] += 1;", "+"),
        ("p[i] <<= 1;", "+"),
        ("p[i]++;", "+"),
        ("--p[i];", "+"),
        ("if (p[i] == 1) return;", "r"),
        ("bool b = 3 & p[i];", "r"),
        ("atomicAdd(&p[i], 1);", "+"),
        ("atomicAdd(&(p[i]), 1);", "+"),
        ("if (i < n && (p[i] > 0)) return;", "r"),
        ("float x = 3 & p[i];", "r"),
        ("float m = max(p[i], 1.0f);", "r"),
        ("float &r = p[i]; r = 2;", "w"),
        ("float &r = p[i]; r = r + 2;", "+"),
        ("const float& r = p[i]; float x = r;", "r"),
        ("float &r = p[i]; float &s = r; if (i) s = 2;", "w"),
        ("float &r = p[i]; const float &s = r; float x = s;", "r"),
        ("// p[i] = 1;\n float x = p[i];", "r"),
    ],
)
def test_each_use_of_a_pointer_counts(body, expected):
    assert modes(kernel("float* p, const int* q", body))[0] == expected


@pytest.mark.parametrize(
    "body",
    [
        "",
        "f(p);",
        "f(p[i]);",
        "f(&p[i]);",
        "*p = 1;",
        "*(p + i) = 1;",
        "float* q = p; q[i] = 1;",
        "p[i].x = 1;",
        "float* q = &p[i]; *q = 1;",
        "p[i] = 1; f(p);",
        "float &r = p[i]; f(r);",
        "SWAP(p[i], p[i + 1]);",
        "float &r{p[i]}; r = 1;",
        "float &r = (p[i]); r = 1;",
        "float &r = c ? p[i] : q[i]; r = 1;",
        "float &r = p[i]; float &s = (r); s = 1;",
    ],
)
def test_a_use_that_may_be_anything_leaves_the_pointer_unknown(body):
    assert modes(kernel("float* p", body)) == "?"


def test_many_references_are_read_in_linear_time_or_not_at_all():
    block = "{ float &v = p[i]; float &w = v; w = 1; }"

    assert modes(kernel("float* p", block * 300)) == "w"
    chain = "float &v0 = p[i];" + "".join(f"float &v{n + 1} = v{n};" for n in range(1200))
    assert modes(kernel("float* p", chain)) == "?"


def test_pointers_to_const_are_read_unless_const_is_cast_away():
    parameters = "const float* __restrict__ a, float const* b, float* const c, const float n"
    assert modes(kernel(parameters, "c[i] = a[i] + b[i];")) == "rrw?"
    assert modes(kernel("const float* a", "((float*)a)[i] = 1;")) == "?"
    assert modes(kernel("const float* a", "const_cast<float*>(a)[i] = 1;")) == "?"


def test_macros_count_as_uses():
    write = "#define POST_MAP(a) (out0 = a)\n__global__ void k(CArray<float, 1> _raw_out0) {"
    assert modes(write + "float &out0 = _raw_out0[i]; POST_MAP(s); }") == "w"
    assert modes("#define P p[i]\n__global__ void k(float* p) { P = 1; }") == "?"
    assert modes("#define SET p[i] = 1\n__global__ void k(float* p) { SET; }") == "w"


def test_kernels_that_cupy_generates():
    source = """
    extern "C" __global__ void cupy_take(const CArray<float, 1, 1, 1> a,
        const CArray<long long, 1, 1, 1> _raw_indices, const long long n_,
        CArray<float, 1, 1, 1> _raw_out, CIndexer<1, 1> _ind) {
      CUPY_FOR(i, _ind.size()) {
        _ind.set(i);
        const long long &indices = _raw_indices[_ind.get()];
        float &out = _raw_out[_ind.get()];
        out = a[indices];
      }
    }
    extern "C" __global__ void cupy_cub_sum(const void* _raw_in0, void* _raw_out0, const int n) {}
    """
    found = modes_by_kernel(source)

    assert found["cupy_take"] == ("read", "read", "unknown", "write", "unknown")
    assert found["cupy_cub_sum"] == ("read", "write", "unknown")


def test_kernels_of_one_name_are_known_where_they_agree():
    assert agreed(("read", "write"), ("read", "read")) == ("read", "unknown")
    assert agreed(("read",), ("read", "read")) == ()
    twice = kernel("float* p", "p[i] = 1;") + kernel("float* p", "float x = p[i];")
    assert modes(twice) == "?"


def test_outputs_of_an_operation():
    outputs = {"y": False, "count": True}
    found = modes_of_operation(outputs, "y = x + 1; atomicAdd(&count[0], y)")

    assert found == {"y": "read_write", "count": "read_write"}


def test_a_reference_to_an_output_is_the_output():
    operation = "T &out0 = a; T &in0 = a; const T &in1 = v[i]; if (mask) out0 = in0 + in1;"

    assert modes_of_operation({"a": False}, operation) == {"a": "read_write"}


def test_an_output_that_is_only_read_is_unknown():
    assert modes_of_operation({"y": False}, "x = y") == {"y": "unknown"}


@pytest.mark.parametrize(
    "source", ["", "__global__ void k(", "__global__ void k(float* p) {", "{}"]
)
def test_a_source_that_is_cut_off_is_no_error(source):
    assert set("".join(map(str, modes_by_kernel(source).values()))) <= set("()',unkow ")


def element_wise(operation, before="", parameters="CArray<double, 2, 0, 1> _raw_y"):
    """Return a kernel like those that CuPy generates, of an input x and an output y."""
    return f"""
    {before}
    extern "C" __global__ void k(
        const CArray<float, 1, 1, 1> _raw_x, {parameters}, CIndexer<1, 1> _ind) {{
      ;
      #pragma unroll 1
      CUPY_FOR(i, _ind.size()) {{
        _ind.set(i);
        const float &x = _raw_x[_ind.get()];
        double &y = _raw_y[_ind.get()];
        {operation};
      }}
    }}
    """


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        ("y = x", (4, 8, 0)),
        ("y = 3", (0, 8, 0)),  # x is not used
        ("y += sqrt(x) * 2", (4, 8, 0)),
        ("if (x > 0) y = x", (0, 0, 0)),
        ("y = x > 0 ? 1 : y", (0, 0, 0)),
        ("y = x; return", (0, 0, 0)),
        ("y = x && _raw_x[i]", (0, 0, 0)),
        ("y = x + _raw_x[i + 1]", (0, 8, 0)),
    ],
)
def test_all_elements_are_accessed_if_nothing_chooses(operation, expected):
    assert elements_by_kernel(element_wise(operation)) == {"k": expected}


def test_a_macro_may_choose():
    maybe = "#define SET(a) if (a > 0) y = a\n"
    assert elements_by_kernel(element_wise("SET(x)", maybe)) == {"k": (0, 0, 0)}
    assert elements_by_kernel(element_wise("y = x", maybe)) == {"k": (4, 8, 0)}


def test_elements_of_raw_arrays_structures_and_unknown_types():
    for parameters in (
        "CArray<double, 1, 1, 1> y",
        "double* _raw_y",
        "CArray<mine, 1, 1, 1> _raw_y",
        "double _raw_y",
    ):
        assert elements_by_kernel(element_wise("y = x", parameters=parameters))["k"][1] == 0
    whole = element_wise("y = x", parameters="const CArray<complex<double>, 1, 1, 1> _raw_y")
    assert elements_by_kernel(whole)["k"] == (4, 16, 0)
    assert elements_by_kernel(whole + whole) == {"k": (0, 0, 0)}


REDUCTION = """
#define REDUCE(a, b) (a + b)
#define POST_MAP(a) ({result})
extern "C" __global__ void k(
    const CArray<float, 2, 1, 1> _raw_in0, CArray<float, 0, 1, 1> _raw_out0,
    CIndexer<2, 1> _in_ind, CIndexer<0, 1> _out_ind) {{
  for (int _j = _i; _j < _in_ind.size(); ++_j) {{
    _in_ind.set(_j);
    const float in0 = _raw_in0[_in_ind.get()];
    _s = REDUCE(_s, in0);
  }}
  if (_i < _out_ind.size()) {{
    _out_ind.set(_i);
    float &out0 = _raw_out0[_out_ind.get()];
    POST_MAP(_s);
  }}
}}
"""


def test_a_reduction_reads_all_and_writes_each_result():
    assert elements_by_kernel(REDUCTION.format(result="out0 = a")) == {"k": (4, 4, 0, 0)}
    assert elements_by_kernel(REDUCTION.format(result="a > 0 ? out0 = a : 0")) == {"k": (0,) * 4}


@pytest.mark.parametrize(
    "source", ["", "__global__ void k(", "__global__ void k(float* p) {", "p[i] = 1;"]
)
def test_other_sources_have_no_elements(source):
    assert not any(map(any, elements_by_kernel(source).values()))
