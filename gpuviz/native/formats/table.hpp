#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "formats/format_error.hpp"

namespace gpuviz::formats {

// Texts as Arrow stores them: valid UTF-8, one after the other.
struct Texts {
    std::vector<std::int32_t> first{0};  // of text n: bytes[first[n] .. first[n + 1])
    std::string bytes;

    Texts() = default;
    template <typename Words>
    explicit Texts(const Words& words) {
        for (const std::string_view word : words) add(word);
    }

    [[nodiscard]] std::size_t count() const noexcept { return first.size() - 1; }
    [[nodiscard]] std::string_view at(std::size_t text) const {
        const auto from = static_cast<std::size_t>(first[text]);
        return std::string_view(bytes).substr(from,
                                              static_cast<std::size_t>(first[text + 1]) - from);
    }
    void add(std::string_view text) {
        if (text.size() > std::numeric_limits<std::int32_t>::max() - bytes.size()) {
            throw FormatError("texts", "more than 2 GiB");
        }
        bytes += text;
        first.push_back(static_cast<std::int32_t>(bytes.size()));
    }
};

// Texts by their positions among words: int8_t of an enumeration, int32_t of other texts.
template <typename Code>
struct Coded {
    std::vector<Code> codes;
    Texts words;
};

// Lists of ids.
struct Lists {
    std::vector<std::int32_t> first{0};  // of list n: items[first[n] .. first[n + 1])
    std::vector<std::uint32_t> items;
};

using Values =
    std::variant<std::vector<std::uint8_t>, std::vector<std::int16_t>, std::vector<std::int32_t>,
                 std::vector<std::uint32_t>, std::vector<std::int64_t>, std::vector<std::uint64_t>,
                 Coded<std::int8_t>, Coded<std::int32_t>, Texts, Lists>;

struct Column {
    std::string_view name;
    Values values;
};

// A table of gpuviz/data/tables.py or gpuviz/data/derived.py, with all of its columns in order.
struct Table {
    std::string_view name;
    std::size_t rows = 0;
    std::vector<Column> columns;

    template <typename Value>
    Table& with(std::string_view column, Value values) {
        columns.push_back({column, Values(std::move(values))});
        return *this;
    }
    // A column of which every row has the same value.
    template <typename Value>
    Table& with_all(std::string_view column, Value value) {
        return with(column, std::vector<Value>(rows, value));
    }
    Table& with_all(std::string_view column, std::string_view text) {
        Texts texts;
        for (std::size_t row = 0; row < rows; ++row) texts.add(text);
        return with(column, std::move(texts));
    }
    // An enumeration, with the words of its values.
    template <typename Code>
    Table& with_codes(std::string_view column, const std::vector<Code>& values,
                      std::span<const std::string_view> words) {
        Coded<std::int8_t> coded{{}, Texts(words)};
        coded.codes.reserve(values.size());
        for (const Code value : values) coded.codes.push_back(static_cast<std::int8_t>(value));
        return with(column, std::move(coded));
    }
};

}  // namespace gpuviz::formats
