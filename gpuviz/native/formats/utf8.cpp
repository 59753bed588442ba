#include "formats/utf8.hpp"

#include <cstddef>

namespace gpuviz::formats {

namespace {

struct Sequence {
    std::size_t length;  // of the longest part that a valid sequence can begin with; at least 1
    bool is_valid;
};

// The ranges are those of table 3-7 of the Unicode standard.
Sequence sequence_at(std::string_view text, std::size_t start) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned lead = byte(start);
    if (lead < 0x80) return {1, true};
    const std::size_t needed = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4) return {1, false};
    unsigned least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
    unsigned most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
    for (std::size_t length = 1; length < needed; ++length) {
        const std::size_t at = start + length;
        if (at >= text.size() || byte(at) < least || byte(at) > most) return {length, false};
        least = 0x80;
        most = 0xBF;
    }
    return {needed, true};
}

}  // namespace

std::string valid_utf8(std::string_view text) {
    std::string valid;
    valid.reserve(text.size());
    for (std::size_t start = 0; start < text.size();) {
        const Sequence found = sequence_at(text, start);
        valid += found.is_valid ? text.substr(start, found.length) : "\xEF\xBF\xBD";
        start += found.length;
    }
    return valid;
}

}  // namespace gpuviz::formats
