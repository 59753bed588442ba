#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "record/activity_rows.hpp"

namespace gpuviz::cupti {

// How a kernel uses what its pointer parameters point at, as far as its name tells.
//
// - A C++ kernel's mangled name has its parameter types: a pointer to const is read.
// - CuPy names its ufuncs `cupy_<function>__<types>` and passes the inputs, the outputs and an
//   indexer: inputs are read, outputs (two of divmod, frexp and modf) written.
// - Everything else is unknown.
[[nodiscard]] std::vector<record::AccessMode> parameter_modes(const std::string& symbol,
                                                              std::size_t parameters);

}  // namespace gpuviz::cupti
