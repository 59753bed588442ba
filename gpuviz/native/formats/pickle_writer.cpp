#include "formats/pickle_writer.hpp"

#include <bit>

namespace gpuviz::formats {

void PickleWriter::little_endian(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) buffer_ += static_cast<char>(value >> 8 * i & 0xFF);
}

void PickleWriter::integer(std::int64_t value) {
    if (value >= 0) {
        unsigned_integer(static_cast<std::uint64_t>(value));
        return;
    }
    opcode(0x8a);
    opcode(8);
    little_endian(static_cast<std::uint64_t>(value), 8);
}

void PickleWriter::unsigned_integer(std::uint64_t value) {
    if (value < 1 << 8) {
        opcode('K');
        little_endian(value, 1);
    } else if (value < 1 << 16) {
        opcode('M');
        little_endian(value, 2);
    } else if (value < std::uint64_t{1} << 31) {
        opcode('J');
        little_endian(value, 4);
    } else {
        const int width =
            static_cast<int>(std::bit_width(value)) / 8 + 1;  // the highest bit is the sign
        opcode(0x8a);
        opcode(width);
        little_endian(value, width < 8 ? width : 8);
        if (width == 9) opcode(0);
    }
}

void PickleWriter::text(std::string_view value) {
    if (value.size() < 1 << 8) {
        opcode(0x8c);
        little_endian(value.size(), 1);
    } else {
        opcode('X');
        little_endian(value.size(), 4);
    }
    buffer_ += value;
}

void PickleWriter::recall(std::uint32_t number) {
    if (number < 1 << 8) {
        opcode('h');
        little_endian(number, 1);
    } else {
        opcode('j');
        little_endian(number, 4);
    }
}

}  // namespace gpuviz::formats
