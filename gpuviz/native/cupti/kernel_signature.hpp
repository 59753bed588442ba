#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "record/activity_rows.hpp"

namespace gpuviz::cupti {

// The access mode of a kernel's pointer parameters, as far as its name determines it.
//
// - A C++ kernel's mangled name contains its parameter types: a pointer to const is read.
// - CuPy's ufuncs are named `cupy_<function>__<types>` and receive the inputs, the outputs and an
//   indexer: inputs are read, outputs (two for divmod, frexp and modf) written.
// - Everything else is unknown.
[[nodiscard]] std::vector<record::AccessMode> parameter_modes(const std::string& symbol,
                                                              std::size_t parameters);

}  // namespace gpuviz::cupti
