#include "formats/torch_settings.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <limits>
#include <utility>

#include "formats/pickle_walk.hpp"

namespace gpuviz::formats {

namespace {

using Kind = PickleValue::Kind;

constexpr std::uint32_t most_divisions = 1 << 16;
// Of a statistic, as of every number of a manifest.
constexpr std::int64_t statistics_limit = std::int64_t{1} << 62;
constexpr std::size_t longest_ordinal = 5;

// Calls `take` with each key that is a text, and its value.
template <typename Take>
void for_each_entry(const PickleItems& dict, Take&& take) {
    const auto items = dict.items();
    for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
        if (items[i].kind() == Kind::text) take(items[i].text()->view(), items[i + 1]);
    }
}

std::optional<std::int64_t> integer_of(PickleValue value) {
    if (value.kind() == Kind::integer) return value.integer();
    if (value.kind() != Kind::large_integer) return std::nullopt;
    const std::uint64_t large = value.large_integer();
    if (large > std::numeric_limits<std::int64_t>::max()) return std::nullopt;
    return static_cast<std::int64_t>(large);
}

std::optional<std::int64_t> size_below(PickleValue value, std::int64_t limit) {
    const auto size = integer_of(value);
    return size && *size >= 0 && *size <= limit ? size : std::nullopt;
}

// By the texts of powers of two; 0 where unknown.
allocator::RoundupDivisions divisions_of(PickleValue value) {
    allocator::RoundupDivisions divisions{};
    if (value.kind() != Kind::dict) return divisions;
    for_each_entry(*value.items(), [&](std::string_view key, PickleValue entry) {
        std::uint32_t power = 0;
        const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), power);
        if (error != std::errc{} || end != key.data() + key.size() || key.front() == '0') return;
        const auto place = static_cast<std::size_t>(std::bit_width(power)) - 1;
        if (!std::has_single_bit(power) || place >= divisions.size()) return;
        divisions[place] =
            static_cast<std::uint32_t>(size_below(entry, most_divisions).value_or(0));
    });
    return divisions;
}

bool is_ordinal(std::string_view text) {
    const auto is_digit = [](char letter) { return letter >= '0' && letter <= '9'; };
    return !text.empty() && text.size() <= longest_ordinal && std::ranges::all_of(text, is_digit);
}

// Whether these are integers by name.
bool are_statistics(PickleValue value) {
    if (value.kind() != Kind::dict) return false;
    bool are = true;
    for_each_entry(*value.items(), [&](std::string_view, PickleValue entry) {
        const auto number = integer_of(entry);
        are = are && number && *number > -statistics_limit && *number < statistics_limit;
    });
    return are;
}

// Statistics by device; those that are none are unknown.
std::string statistics_json(PickleValue value, const Place& place) {
    if (value.kind() != Kind::dict || value.items()->items().empty()) return "";
    bool are = true;
    for_each_entry(*value.items(), [&](std::string_view device, PickleValue statistics) {
        are = are && is_ordinal(device) && are_statistics(statistics);
    });
    return are ? to_json(value, place) : "{}";
}

std::optional<std::vector<std::string>> texts_of(PickleValue value) {
    if (value.kind() != Kind::list && value.kind() != Kind::tuple) return std::nullopt;
    std::vector<std::string> texts;
    for (const PickleValue item : value.items()->items()) {
        if (item.kind() != Kind::text) return std::nullopt;
        texts.emplace_back(item.text()->view());
    }
    return texts;
}

// Pairs of integers; none if there is another value.
std::vector<std::int64_t> pairs_of(PickleValue value) {
    if (value.kind() != Kind::list && value.kind() != Kind::tuple) return {};
    std::vector<std::int64_t> integers;
    for (const PickleValue item : value.items()->items()) {
        const auto integer = integer_of(item);
        if (!integer) return {};
        integers.push_back(*integer);
    }
    return integers.size() % 2 == 0 ? integers : std::vector<std::int64_t>{};
}

}  // namespace

TorchSettings torch_settings(PickleValue value) {
    const Place place{"allocator_settings"};
    const PickleItems& entries = dict_of(value, place, "");
    TorchSettings settings;
    settings.json = to_json(value, place);
    for_each_entry(entries, [&](std::string_view key, PickleValue entry) {
        if (key == "max_split_size") {
            settings.max_split_size = size_below(entry, std::numeric_limits<std::int64_t>::max());
        } else if (key == "roundup_power2_divisions") {
            settings.rounding.divisions = divisions_of(entry);
        } else if (key == "PYTORCH_CUDA_ALLOC_CONF") {
            settings.configuration = entry.kind() == Kind::text ? entry.text()->view() : "";
        }
    });
    if (settings.max_split_size) {
        settings.rounding.max_split_size = static_cast<std::uint64_t>(*settings.max_split_size);
    }
    return settings;
}

TorchRecorder torch_recorder(PickleValue value) {
    const Place place{"gpuviz"};
    const PickleItems& entries = dict_of(value, place, "");
    TorchRecorder recorder;
    for_each_entry(entries, [&](std::string_view key, PickleValue entry) {
        if (key == "program") {
            recorder.program = texts_of(entry);
        } else if (key == "start_unix_ns") {
            recorder.start_unix_ns = size_below(entry, latest_us * 1000);
        } else if (key == "simulated") {
            recorder.simulated = entry.kind() == Kind::boolean && entry.boolean();
        } else if (key == "device_order") {
            recorder.device_order = pairs_of(entry);
        } else if (key == "memory_stats") {
            recorder.memory_stats = statistics_json(entry, place);
        } else if (entry.kind() == Kind::text) {
            const auto kept = std::ranges::find(kept_texts, key);
            if (kept != kept_texts.end()) recorder.texts.emplace_back(*kept, entry.text()->view());
        }
    });
    return recorder;
}

}  // namespace gpuviz::formats
