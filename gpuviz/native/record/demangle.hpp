#pragma once

#include <string>

namespace gpuviz::record {

// The C++ name that a symbol stands for, with its parameters' types; empty if it stands for none.
[[nodiscard]] std::string demangled(const char* symbol);

}  // namespace gpuviz::record
