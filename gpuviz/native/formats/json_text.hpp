#pragma once

#include <span>
#include <string>
#include <string_view>

namespace gpuviz::formats {

// A text as JSON, and a list of texts.
[[nodiscard]] std::string json_text(std::string_view text);
[[nodiscard]] std::string json_texts(std::span<const std::string> texts);

// A list of values that are JSON already.
class JsonList {
  public:
    void add(std::string_view value) {
        if (text_.size() > 1) text_ += ',';
        text_ += value;
    }
    [[nodiscard]] std::string text() && { return std::move(text_ += ']'); }

  private:
    std::string text_ = "[";
};

// The same with a key for each value; of several with one key, the last counts.
class JsonObject {
  public:
    void add(std::string_view key, std::string_view value) {
        if (text_.size() > 1) text_ += ',';
        text_ += json_text(key);
        text_ += ':';
        text_ += value;
    }
    [[nodiscard]] std::string text() && { return std::move(text_ += '}'); }

  private:
    std::string text_ = "{";
};

}  // namespace gpuviz::formats
