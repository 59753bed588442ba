"""CuPy's arrays on a simulated GPU: the kernels that it launches, with their names and times."""

import gc

import pyarrow as pa

import gpuviz
from gpuviz.data.implied_columns import OWN
from gpuviz.data.tables import schemas
from gpuviz.recording import Recording

MI = 1 << 20
_BYTES = {
    "bool": 1,
    "uint16": 2,
    "int32": 4,
    "float32": 4,
    "int64": 8,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}
_RATE, _LAUNCH_S, _EMPTY_S = 2.5e12, 8e-6, 2e-6


class Array:
    """An array without contents, or a part of one."""

    def __init__(self, library, memory, size, kind):
        self.library, self.memory, self.size, self.kind = library, memory, size, kind

    @property
    def T(self):  # noqa: N802 - as NumPy's arrays
        return self

    def __add__(self, other):
        return self.library.elementwise("add", self, other)

    def __mul__(self, other):
        return self.library.elementwise("multiply", self, other)

    def __sub__(self, other):
        return self.library.elementwise("subtract", self, other)

    def __iadd__(self, other):
        return self.library.elementwise("add", self, other, out=self)

    def __isub__(self, other):
        return self.library.elementwise("subtract", self, other, out=self)

    def __setitem__(self, index, other):
        self.library.copyto(self, other)

    def copy(self):
        return self.library.elementwise("copy", self)

    def __float__(self):
        self.library.launches(copies=self)
        return 0.5

    def sum(self):
        result = self.library.empty(1, self.kind)
        self.library.kernel("cupy_sum", [self], [result])
        return result


class Arrays:
    """The functions of CuPy that the programs use; each call costs the host what a launch does."""

    def __init__(self, gpu):
        self.gpu = gpu

    def empty(self, size, kind="float32"):
        return Array(self, self.gpu.empty(size * _BYTES[kind]), size, kind)

    def launches(self, copies=None):
        self.gpu.work_on_host(_LAUNCH_S)
        if copies is not None:
            self.gpu.copy_to_host(copies.memory)
            self.gpu.current_stream.synchronize()

    def kernel(self, name, reads, writes, duration=None, scalars=()):
        arrays = [each.memory for each in (*reads, *writes)]
        size = max((each.size for each in (*reads, *writes)), default=1)
        self.launches()
        self.gpu.launch(
            name,
            reads=[each.memory for each in reads],
            writes=[each.memory for each in writes],
            scalars=scalars,
            grid=(-(-size // 128),),
            block=(128,),
            duration=duration or _EMPTY_S + sum(each.nbytes for each in arrays) / _RATE,
        )

    def elementwise(self, name, *inputs, out=None):
        arrays = [each for each in inputs if isinstance(each, Array)]
        kind = max((each.kind for each in arrays), key=_BYTES.__getitem__)
        size = max(each.size for each in arrays)
        result = self.empty(size, kind) if out is None else out
        kinds = [each.kind if isinstance(each, Array) else "float" for each in inputs]
        moved = sum(each.memory.nbytes for each in arrays) + size * _BYTES[result.kind]
        called = f"cupy_{name}__{'_'.join([*kinds, result.kind])}"
        scalars = [each for each in inputs if not isinstance(each, Array)]
        self.kernel(called, arrays, [result], _EMPTY_S + moved / _RATE, scalars)
        return result

    def copyto(self, target, source):
        """Copy an array to another by a memcpy, as CuPy does if both are contiguous."""
        self.launches()
        self.gpu.copy(source.memory, target.memory)

    def astype(self, array, kind):
        """Convert an array, as `astype` does, or make float64 of integers, as a division does."""
        name = f"true_divide__int64_float_{kind}" if array.kind == "int64" else ""
        result = self.empty(array.size, kind)
        moved = array.memory.nbytes + result.memory.nbytes
        called = f"cupy_{name or f'copy__{array.kind}_{kind}'}"
        self.kernel(called, [array], [result], _EMPTY_S + moved / _RATE)
        return result

    def arange(self, size):
        result = self.empty(size, "int64")
        self.kernel("cupy_arange__int_int_int64", [], [result])
        return result

    def fftfreq(self, size):
        return self.astype(self.arange(size), "float64")

    def times(self, first, second, size):
        """Multiply arrays or complex numbers, which may be in single and in double precision."""
        arrays = [each for each in (first, second) if isinstance(each, Array)]
        kinds = [each.kind if isinstance(each, Array) else "complex" for each in (first, second)]
        is_double = any(each.kind in ("float64", "complex128") for each in arrays)
        is_complex = any(each.startswith("complex") for each in kinds)
        types = ("complex64", "complex128") if is_complex else ("float32", "float64")
        result = self.empty(size, types[is_double])
        self.kernel(f"cupy_multiply__{'_'.join([*kinds, result.kind])}", arrays, [result])
        return result

    def transform(self, array, *, inverse=False):
        single = array.kind in ("float32", "complex64")
        kinds = ("float32", "complex64") if single else ("float64", "complex128")
        result = self.empty(array.size, kinds[not inverse])
        moved = array.memory.nbytes + result.memory.nbytes
        name = "void regular_fft<2048u, EPT<8u>, 4u, 1u>"
        self.kernel(name, [array], [result], _EMPTY_S + moved / _RATE)
        return result

    def mean(self, array):
        """Reduce an array in steps, with a work area that is freed at once."""
        area, result = self.empty(2 * array.size), self.empty(1)
        self.kernel("reduce", [array], [area, result])
        return result

    def reduced(self, array, size, kind):
        """Return the mean of an array in a type, as `mean` does along an axis."""
        result = self.empty(size, kind)
        self.kernel("cupy_mean", [array], [result])
        return result

    def product(self, matrix, state, *, copies):
        """Multiply matrices, after a copy of the first one if it is not contiguous."""
        packed = self.elementwise("copy", matrix) if copies else matrix
        result = self.empty(matrix.size)
        self.kernel("sm80_xmma_gemm_f32", [packed, state], [result])
        return result

    def layers(self, array, hook):
        """Call a function with the result of each layer of a model, as hooks of modules are."""
        for _ in range(4):
            result = self.elementwise("exp", array)
            hook(result)
            array = result
        return array

    def uploaded(self, size, kind="float32"):
        result = self.empty(size, kind)
        self.gpu.copy_to_device(result.memory)
        return result

    def random(self, size, kind="float32"):
        result = self.empty(size, kind)
        self.kernel("curand_uniform", [], [result])
        return result

    def joined(self, parts):
        result = self.empty(sum(each.size for each in parts), parts[0].kind)
        for each in parts:
            self.elementwise("copy", each, out=result)
        return result


def of_arrays(program):
    """Return the recording of a program, in which these functions are a library's, not its own.

    Cycles that it makes, such as of an exception and its frames, are there until it ends.
    """
    gpu = gpuviz.SimulatedGPU(real_time=False)
    gc.disable()
    try:
        with gpuviz.record(device=gpu) as recorder:
            program(Arrays(gpu))
            gpu.synchronize()
    finally:
        gc.enable()
    recording = recorder.recording
    frames, stacks = recording.tables["frames"].to_pylist(), recording.tables["stacks"].to_pylist()
    own = {each["id"] for each in frames if each["filename"] != __file__}
    rows = [row | {"frames": [each for each in row["frames"] if each in own]} for row in stacks]
    of_libraries = {each["id"] for each in frames if each["installed"] != OWN}
    for row in rows:
        user = [each for each in row["frames"] if each not in of_libraries]
        row["user_frame"] = next(iter(user or row["frames"]), 0)
    changed = {"stacks": pa.Table.from_pylist(rows, schemas()["stacks"])}
    return Recording({**recording.tables, **changed}, recording.manifest)
