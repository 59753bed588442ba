#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "record/activity_rows.hpp"

namespace gpuviz::cupti {

// The mode of the pointers in a parameter, which may be a structure: of the first, and of those
// after it.
struct ParameterMode {
    record::AccessMode first = record::AccessMode::unknown;
    record::AccessMode later = record::AccessMode::unknown;
    bool is_array = false;  // of pointers: `first` is that of its first element
};

// The access mode of a kernel's pointer parameters, as far as its name determines it, or what was
// declared about it.
//
// - A C++ kernel's mangled name contains its parameter types: a pointer to const is read.
// - CuPy's ufuncs are named `cupy_<function>__<types>` and receive the inputs, the outputs and an
//   indexer: inputs are read, outputs (two for divmod, frexp and modf) written.
// - Kernels of CUB, cuFFT, cuSPARSE, cuRAND and CuPy's random generators, and some of PyTorch's,
//   have parameters of known use.
// - PyTorch's own kernels receive what they only read as pointers to const; if one has such a
//   parameter, its other pointers are written, and may be read.
// - Everything else is unknown.
[[nodiscard]] std::vector<ParameterMode> parameter_modes(const std::string& symbol,
                                                         std::size_t parameters);

// Declares the modes of the leading parameters of kernels of this name, for functions that are
// launched for the first time later. Declared again, only what agrees remains known. Thread-safe.
void declare_modes(const std::string& symbol, std::vector<record::AccessMode> modes);

}  // namespace gpuviz::cupti
