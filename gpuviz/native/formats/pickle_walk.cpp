#include "formats/pickle_walk.hpp"

#include <charconv>
#include <cmath>

#include "formats/format_error.hpp"
#include "formats/json_text.hpp"

namespace gpuviz::formats {

namespace {

using Kind = PickleValue::Kind;

constexpr std::array<std::string_view, static_cast<std::size_t>(Key::beyond) - 1> key_names = {
    "segments",
    "device_traces",
    "allocator_settings",
    "external_annotations",
    "gpuviz",
    "host_segments",
    "host_traces",
    "action",
    "addr",
    "device_free",
    "size",
    "stream",
    "time_us",
    "pool_id",
    "frames",
    "user_metadata",
    "block_size",
    "requested_size",
    "device",
    "address",
    "total_size",
    "segment_type",
    "segment_pool_id",
    "is_expandable",
    "blocks",
    "state",
    "history",
    "real_size",
    "filename",
    "line",
    "name",
    "stage",
    "synthetic",
    "pool_is_large",
};
constexpr int deepest_json = 16;
constexpr std::size_t longest_json = std::size_t{1} << 20;

class JsonText {
  public:
    explicit JsonText(const Place& place) : place_(&place) {}

    void append(PickleValue value, int depth) {
        if (depth > deepest_json || text_.size() > longest_json) {
            throw FormatError(place_->text(), "nested too deep or too long");
        }
        switch (value.kind()) {
            case Kind::boolean:
                text_ += value.boolean() ? "true" : "false";
                return;
            case Kind::integer:
                text_ += std::to_string(value.integer());
                return;
            case Kind::large_integer:
                text_ += std::to_string(value.large_integer());
                return;
            case Kind::floating:
                return append_floating(value.floating());
            case Kind::text:
                text_ += json_text(value.text()->view());
                return;
            case Kind::list:
            case Kind::tuple:
                return append_list(value, depth);
            case Kind::dict:
                return append_dict(value, depth);
            default:
                text_ += "null";
        }
    }
    [[nodiscard]] std::string take() && { return std::move(text_); }

  private:
    void append_floating(double value) {
        std::array<char, 32> digits;
        const auto end = std::to_chars(digits.begin(), digits.end(), value).ptr;
        text_ += std::isfinite(value) ? std::string(digits.data(), end) : "null";
    }
    void append_list(PickleValue value, int depth) {
        text_ += '[';
        bool is_first = true;
        for (const PickleValue item : value.items()->items()) {
            if (!is_first) text_ += ',';
            is_first = false;
            append(item, depth + 1);
        }
        text_ += ']';
    }
    void append_dict(PickleValue value, int depth) {
        text_ += '{';
        const auto items = value.items()->items();
        bool is_first = true;
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            if (items[i].kind() != Kind::text) continue;
            if (!is_first) text_ += ',';
            is_first = false;
            text_ += json_text(items[i].text()->view());
            text_ += ':';
            append(items[i + 1], depth + 1);
        }
        text_ += '}';
    }

    const Place* place_;
    std::string text_;
};

}  // namespace

void intern_keys(PickleTexts& texts) {
    for (const std::string_view name : key_names) texts.intern(name);
}

std::string Place::text() const {
    std::string text(list);
    if (position >= 0) text += '[' + std::to_string(position) + ']';
    if (!inner.empty()) text += '.' + std::string(inner);
    if (inner_position >= 0) text += '[' + std::to_string(inner_position) + ']';
    return text;
}

void fail_at(const Place& place, std::string_view key, std::string_view expected) {
    std::string problem = "expected ";
    if (!key.empty()) problem += '"' + std::string(key) + "\" to be ";
    throw FormatError(place.text(), problem + std::string(expected));
}

PickleItems& list_of(PickleValue value, const Place& place, std::string_view key) {
    if (value.kind() != Kind::list && value.kind() != Kind::tuple) fail_at(place, key, "a list");
    return *value.items();
}

PickleItems& dict_of(PickleValue value, const Place& place, std::string_view key) {
    if (value.kind() != Kind::dict) fail_at(place, key, "a dict");
    return *value.items();
}

std::int64_t size_of(PickleValue value, const Place& place, std::string_view key) {
    if (value.kind() != Kind::integer || value.integer() < 0) {
        fail_at(place, key, "an integer of at least 0 and below 2**59");
    }
    return value.integer();
}

std::uint64_t word_of(PickleValue value, const Place& place, std::string_view key) {
    if (value.kind() == Kind::large_integer) return value.large_integer();
    if (value.kind() != Kind::integer) fail_at(place, key, "an integer below 2**64");
    return static_cast<std::uint64_t>(value.integer());
}

std::uint32_t text_of(PickleValue value, const Place& place, std::string_view key) {
    if (value.kind() != Kind::text) fail_at(place, key, "a text");
    return value.text()->id;
}

std::string to_json(PickleValue value, const Place& place) {
    JsonText text(place);
    text.append(value, 0);
    return std::move(text).take();
}

}  // namespace gpuviz::formats
