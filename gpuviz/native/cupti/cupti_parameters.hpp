#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace gpuviz::cupti {

// A parameter of a call, at an offset of CuptiCall in CUPTI's structure.
template <typename Value>
[[nodiscard]] Value member_at(const void* parameters, std::int16_t offset) {
    Value value;
    std::memcpy(&value, static_cast<const std::byte*>(parameters) + offset, sizeof value);
    return value;
}

}  // namespace gpuviz::cupti
