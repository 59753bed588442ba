"""What the source of a kernel says about its pointers."""

import pytest

from gpuviz.frameworks.kernel_sources import agreed, modes_by_kernel, modes_of_operation

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
        ("float m = max(p[i], 1.0f);", "r"),
        ("float &r = p[i]; r = 2;", "w"),
        ("float &r = p[i]; r = r + 2;", "+"),
        ("const float& r = p[i]; float x = r;", "r"),
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
    ],
)
def test_a_use_that_may_be_anything_leaves_the_pointer_unknown(body):
    assert modes(kernel("float* p", body)) == "?"


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


@pytest.mark.parametrize(
    "source", ["", "__global__ void k(", "__global__ void k(float* p) {", "{}"]
)
def test_a_source_that_is_cut_off_is_no_error(source):
    assert set("".join(map(str, modes_by_kernel(source).values()))) <= set("()',unkow ")
