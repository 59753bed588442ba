#include "formats/json_text.hpp"

namespace gpuviz::formats {

std::string json_text(std::string_view text) {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string json = "\"";
    for (const char character : text) {
        const auto code = static_cast<unsigned char>(character);
        if (character == '"' || character == '\\') {
            json += '\\';
            json += character;
        } else if (code < 0x20) {
            json += "\\u00";
            json += digits[code >> 4];
            json += digits[code & 15];
        } else {
            json += character;
        }
    }
    return json + '"';
}

std::string json_texts(std::span<const std::string> texts) {
    JsonList list;
    for (const std::string& text : texts) list.add(json_text(text));
    return std::move(list).text();
}

}  // namespace gpuviz::formats
