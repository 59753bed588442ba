#pragma once

#include <cstdint>
#include <string_view>

namespace gpuviz::record {

// Whose code a file has: the column `installed` of the table `frames`.
enum class CodeOrigin : std::uint8_t {
    own,
    installed,  // it belongs to Python or to an installed package
    generated,  // a program or a library made it while it ran
};

// As far as the file's name shows.
[[nodiscard]] CodeOrigin code_origin(std::string_view filename);

// The innermost frame of the program's own files, else of code made while it ran, else of all; 0 if
// there is none. `frames` are ids, innermost first; `origin_of` gives the origin of each.
template <typename Frames, typename OriginOf>
[[nodiscard]] std::uint32_t user_frame(const Frames& frames, OriginOf&& origin_of) {
    std::uint32_t generated = 0;
    std::uint32_t installed = 0;
    for (const std::uint32_t frame : frames) {
        if (frame == 0) continue;
        const CodeOrigin origin = origin_of(frame);
        if (origin == CodeOrigin::own) return frame;
        std::uint32_t& first = origin == CodeOrigin::generated ? generated : installed;
        if (first == 0) first = frame;
    }
    return generated != 0 ? generated : installed;
}

}  // namespace gpuviz::record
