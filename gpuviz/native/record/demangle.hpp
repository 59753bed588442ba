#pragma once

#include <string>

namespace gpuviz::record {

// The demangled C++ name of a symbol, with its parameter types; empty if it is not a C++ symbol.
[[nodiscard]] std::string demangled(const char* symbol);

}  // namespace gpuviz::record
