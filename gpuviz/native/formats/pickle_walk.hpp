#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "formats/pickle_texts.hpp"
#include "formats/pickle_value.hpp"

namespace gpuviz::formats {

// The keys of torch's snapshots. Their texts are interned first, so that ids identify them.
enum class Key : std::uint32_t {
    none,
    segments,
    device_traces,
    allocator_settings,
    external_annotations,
    gpuviz,
    host_segments,
    host_traces,
    action,
    addr,
    device_free,
    size,
    stream,
    time_us,
    pool_id,
    frames,
    user_metadata,
    block_size,
    requested_size,
    device,
    address,
    total_size,
    segment_type,
    segment_pool_id,
    is_expandable,
    blocks,
    state,
    history,
    real_size,
    filename,
    line,
    name,
    stage,
    synthetic,
    pool_is_large,
    beyond,
};

// Interns the texts of all keys; to be called before anything else is interned.
void intern_keys(PickleTexts& texts);

// The path of a value, for errors; its text is built only when one is thrown.
struct Place {
    std::string_view list;
    std::int64_t position = -1;
    std::string_view inner = {};
    std::int64_t inner_position = -1;

    [[nodiscard]] std::string text() const;
};

[[noreturn]] void fail_at(const Place& place, std::string_view key, std::string_view expected);

// These throw FormatError, which names `key`, if the value has another kind.
[[nodiscard]] PickleItems& list_of(PickleValue value, const Place& place, std::string_view key);
[[nodiscard]] PickleItems& dict_of(PickleValue value, const Place& place, std::string_view key);
[[nodiscard]] std::int64_t size_of(PickleValue value, const Place& place, std::string_view key);
[[nodiscard]] std::uint64_t word_of(PickleValue value, const Place& place, std::string_view key);
[[nodiscard]] std::uint32_t text_of(PickleValue value, const Place& place, std::string_view key);

[[nodiscard]] inline Key key_of(PickleValue value) noexcept {
    if (value.kind() != PickleValue::Kind::text) return Key::none;
    const std::uint32_t id = value.text()->id;
    return id < static_cast<std::uint32_t>(Key::beyond) ? static_cast<Key>(id) : Key::none;
}

// A value as JSON, for values that are kept without interpretation. Throws if the value is nested
// deeper or longer than in a snapshot.
[[nodiscard]] std::string to_json(PickleValue value, const Place& place);

}  // namespace gpuviz::formats
