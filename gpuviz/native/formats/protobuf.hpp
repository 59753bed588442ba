#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gpuviz::formats {

// Appends the fields of a Protocol Buffers message to a string.
class ProtobufFields {
  public:
    explicit ProtobufFields(std::string& bytes) : bytes_(bytes) {}

    void number(std::uint32_t field, std::uint64_t value) {
        varint(field << 3);
        varint(value);
    }

    void fixed64(std::uint32_t field, std::uint64_t value) {
        varint(field << 3 | 1U);
        for (int shift = 0; shift < 64; shift += 8) {
            bytes_.push_back(static_cast<char>(value >> shift & 0xffU));
        }
    }

    void bytes(std::uint32_t field, std::string_view value) {
        varint(field << 3 | 2U);
        varint(value.size());
        bytes_.append(value);
    }

  private:
    void varint(std::uint64_t value) {
        for (; value >= 0x80U; value >>= 7) bytes_.push_back(static_cast<char>(value | 0x80U));
        bytes_.push_back(static_cast<char>(value));
    }

    std::string& bytes_;
};

}  // namespace gpuviz::formats
