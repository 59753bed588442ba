#pragma once

#include <string>

namespace gpuviz::clients {

// Throws c10::OutOfMemoryError, which torch turns into torch.OutOfMemoryError, or
// std::runtime_error if the torch of this process has no such type.
[[noreturn]] void throw_torch_out_of_memory(const std::string& text);

}  // namespace gpuviz::clients
