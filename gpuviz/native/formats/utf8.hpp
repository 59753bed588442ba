#pragma once

#include <string>
#include <string_view>

namespace gpuviz::formats {

// The text with U+FFFD in place of what is no UTF-8, as Python and browsers replace it.
[[nodiscard]] std::string valid_utf8(std::string_view text);

}  // namespace gpuviz::formats
