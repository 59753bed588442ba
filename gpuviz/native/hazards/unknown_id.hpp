#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

namespace gpuviz::hazards {

[[noreturn]] inline void throw_unknown(const char* what, std::uint64_t id) {
    throw std::invalid_argument(std::string(what) + " " + std::to_string(id) + " does not exist");
}

}  // namespace gpuviz::hazards
