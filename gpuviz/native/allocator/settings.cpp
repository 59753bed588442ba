#include "allocator/settings.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace gpuviz::allocator {

using namespace std::string_view_literals;

namespace {

[[noreturn]] void fail(const std::string& text) { throw std::invalid_argument(text); }

// The words and punctuation of a settings string, read from left to right.
class Tokens {
  public:
    explicit Tokens(const std::string& text) {
        std::string word;
        for (const char letter : text + " ") {
            const bool separates = std::string_view(",:[]").find(letter) != std::string_view::npos;
            if ((separates || std::isspace(static_cast<unsigned char>(letter))) && !word.empty()) {
                tokens_.push_back(word);
                word.clear();
            }
            if (separates) {
                tokens_.emplace_back(1, letter);
            } else if (!std::isspace(static_cast<unsigned char>(letter))) {
                word += letter;
            }
        }
    }

    [[nodiscard]] bool at_end() const noexcept { return next_ == tokens_.size(); }
    [[nodiscard]] bool sees(std::string_view token) const {
        return !at_end() && tokens_[next_] == token;
    }
    const std::string& take(const std::string& wanted) {
        if (at_end()) {
            fail("The allocator settings end where " + wanted + " is expected.");
        }
        return tokens_[next_++];
    }
    void expect(std::string_view token) {
        const std::string wanted = std::string("'").append(token).append("'");
        const std::string& found = take(wanted);
        if (found != token) {
            fail("The allocator settings have '" + found + "' where " + wanted + " is expected.");
        }
    }
    bool take_boolean() {
        const std::string value = take("True or False");
        if (value != "True" && value != "False") {
            fail("Expected 'True' or 'False' at index " + std::to_string(next_ - 1) +
                 " in the allocator settings but got '" + value + "'");
        }
        return value == "True";
    }
    template <typename Number>
    Number take_number(const std::string& key, const char* kind) {
        const std::string value = take("a number");
        Number number{};
        const auto [end, error] =
            std::from_chars(value.data(), value.data() + value.size(), number);
        if (error != std::errc{} || end != value.data() + value.size()) {
            fail("CachingAllocator option " + key + " expects " + kind + ", got '" + value + "'");
        }
        return number;
    }
    std::uint64_t take_integer(const std::string& key) {
        return take_number<std::uint64_t>(key, "a whole number");
    }
    double take_real(const std::string& key) { return take_number<double>(key, "a number"); }
    // At most what fits into 64 bits of bytes.
    std::uint64_t take_megabytes(const std::string& key) {
        return std::min(take_integer(key), Settings::kUnlimited / kMiB);
    }
    // Consumes the tokens up to the next "," outside brackets, and returns them as text.
    std::string take_rest_of_value() {
        std::string value = take("a value");
        for (int depth = value == "[" ? 1 : 0; depth > 0 || (!at_end() && !sees(","));) {
            const std::string& token = take("']'");
            depth += token == "[" ? 1 : token == "]" ? -1 : 0;
            value += token;
        }
        return value;
    }

  private:
    std::vector<std::string> tokens_;
    std::size_t next_ = 0;
};

std::uint32_t take_divisions(Tokens& tokens) {
    const std::uint64_t value = tokens.take_integer("roundup_power2_divisions");
    if ((value != 0 && !std::has_single_bit(value)) || value > 1024 * kMiB) {
        fail("For roundups, the divisions has to be power of 2 (or 0 to disable roundup), got " +
             std::to_string(value));
    }
    return static_cast<std::uint32_t>(value);
}

// 0 only turns off an interval of a list.
std::uint32_t take_divisions_of_all(Tokens& tokens) {
    const std::uint32_t value = take_divisions(tokens);
    if (value == 0) {
        fail("For roundups, the divisions has to be power of 2, got 0");
    }
    return value;
}

RoundupDivisions take_division_list(Tokens& tokens) {
    RoundupDivisions divisions{};
    const auto from = [&](std::size_t index) {
        return divisions.begin() + static_cast<std::ptrdiff_t>(std::min(index, divisions.size()));
    };
    std::size_t last = 0;
    bool is_first_size = true;
    tokens.expect("[");
    for (bool is_first = true; !tokens.sees("]"); is_first = false) {
        if (!is_first) {
            tokens.expect(",");
        }
        if (tokens.sees(">")) {
            tokens.expect(">");
            tokens.expect(":");
            // Never the first interval, even if no other is named: as torch.
            std::fill(from(last + 1), divisions.end(), take_divisions(tokens));
            continue;
        }
        const std::uint64_t megabytes = tokens.take_megabytes("roundup_power2_divisions");
        if (!std::has_single_bit(megabytes)) {
            fail("For roundups, the intervals have to be power of 2 , got " +
                 std::to_string(megabytes));
        }
        tokens.expect(":");
        const std::uint32_t value = take_divisions(tokens);
        const std::size_t index = roundup_index(megabytes * kMiB);
        std::fill(from(is_first_size ? 0 : index), from(index + 1), value);
        is_first_size = false;
        last = index;
    }
    tokens.expect("]");
    return divisions;
}

double take_fraction(Tokens& tokens) {
    const double value = tokens.take_real("per_process_memory_fraction");
    if (!(value >= 0.0 && value <= 1.0)) {
        fail("per_process_memory_fraction is invalid, set it in [0.0, 1.0]");
    }
    return value;
}

double take_threshold(Tokens& tokens) {
    const double value = tokens.take_real("garbage_collection_threshold");
    if (!(value > 0.0 && value < 1.0)) {
        fail("garbage_collect_threshold is invalid, set it in (0.0, 1.0)");
    }
    return value;
}

std::uint64_t take_at_least_segment(Tokens& tokens, const std::string& key,
                                    const Settings& settings) {
    const std::uint64_t megabytes = tokens.take_megabytes(key);
    const std::uint64_t least = settings.large_segment_size / kMiB;
    if (megabytes < least) {
        fail("CachingAllocator option " + key + " too small, must be >= " + std::to_string(least) +
             ", got " + std::to_string(megabytes));
    }
    return megabytes * kMiB;
}

std::uint64_t take_large_segment(Tokens& tokens) {
    const std::uint64_t megabytes = tokens.take_megabytes("large_segment_size_mb");
    if (megabytes <= kMinLargeAlloc / kMiB) {
        fail("CachingAllocator option large_segment_size_mb must be > 10 MB, got " +
             std::to_string(megabytes));
    }
    return megabytes * kMiB;
}

std::string take_register_threads(Tokens& tokens) {
    const std::uint64_t threads = tokens.take_integer("pinned_num_register_threads");
    if (!std::has_single_bit(threads)) {
        fail("Number of register threads has to be power of 2, got " + std::to_string(threads));
    }
    if (threads > 128) {
        fail("Number of register threads should be less than or equal to 128, got " +
             std::to_string(threads));
    }
    return std::to_string(threads);
}

std::string take_backend(Tokens& tokens) {
    const std::string& value = tokens.take("a backend");
    if (value != "native" && value != "cudaMallocAsync") {
        fail("Unknown allocator backend, options are native and cudaMallocAsync, got '" + value +
             "'");
    }
    return value;
}

constexpr std::array kBooleans{
    "release_lock_on_cudamalloc"sv,    "throw_on_cudamalloc_oom"sv,
    "pinned_use_background_threads"sv, "pinned_use_cuda_host_register"sv,
    "pinned_free_catch_all"sv,         "graph_capture_record_stream_reuse"sv};
constexpr std::array kOthers{"max_split_size_mb"sv,
                             "max_non_split_rounding_mb"sv,
                             "large_segment_size_mb"sv,
                             "garbage_collection_threshold"sv,
                             "per_process_memory_fraction"sv,
                             "expandable_segments"sv,
                             "roundup_power2_divisions"sv,
                             "pinned_max_round_threshold_mb"sv,
                             "pinned_max_cached_size_mb"sv,
                             "pinned_num_register_threads"sv,
                             "pinned_reserve_segment_size_mb"sv,
                             "backend"sv,
                             "expandable_segments_reserve"sv,
                             "expandable_segments_reserve_by_class"sv};

std::string known_keys() {
    std::string keys;
    for (const std::string_view key : kOthers) {
        keys.append(keys.empty() ? "" : ", ").append(key);
    }
    for (const std::string_view key : kBooleans) {
        keys.append(", ").append(key);
    }
    return keys;
}

template <std::size_t count>
bool has(const std::array<std::string_view, count>& keys, std::string_view key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
}

// The keys of torch that have no effect here.
std::string take_inert(const std::string& key, Tokens& tokens) {
    if (has(kBooleans, key)) {
        return tokens.take_boolean() ? "True" : "False";
    }
    if (key == "backend") {
        return take_backend(tokens);
    }
    if (key == "pinned_num_register_threads") {
        return take_register_threads(tokens);
    }
    if (key.starts_with("expandable_segments_reserve")) {
        return tokens.take_rest_of_value();
    }
    const std::uint64_t megabytes = tokens.take_megabytes(key);
    if (key == "pinned_reserve_segment_size_mb" && megabytes == 0) {
        fail("Pinned reserve segment size has to be greater than 0, got 0");
    }
    return std::to_string(megabytes);
}

void take_option(const std::string& key, Tokens& tokens, Settings& settings) {
    if (key == "max_split_size_mb") {
        settings.max_split_size = take_at_least_segment(tokens, key, settings);
    } else if (key == "max_non_split_rounding_mb") {
        settings.max_non_split_rounding_size = take_at_least_segment(tokens, key, settings);
    } else if (key == "large_segment_size_mb") {
        settings.large_segment_size = take_large_segment(tokens);
    } else if (key == "garbage_collection_threshold") {
        settings.garbage_collection_threshold = take_threshold(tokens);
    } else if (key == "per_process_memory_fraction") {
        settings.per_process_memory_fraction = take_fraction(tokens);
    } else if (key == "expandable_segments") {
        settings.expandable_segments = tokens.take_boolean();
    } else if (key == "pinned_max_round_threshold_mb") {
        settings.pinned_max_round_threshold = tokens.take_megabytes(key) * kMiB;
    } else if (key == "pinned_max_cached_size_mb") {
        settings.pinned_max_cached_size = tokens.take_megabytes(key) * kMiB;
    } else if (key == "roundup_power2_divisions" && tokens.sees("[")) {
        settings.roundup_power2_divisions = take_division_list(tokens);
    } else if (key == "roundup_power2_divisions") {
        settings.roundup_power2_divisions.fill(take_divisions_of_all(tokens));
    } else {
        settings.inert[key] = take_inert(key, tokens);
    }
}

// The other options are checked against this one, regardless of the order.
std::uint64_t find_large_segment(Tokens tokens, std::uint64_t otherwise) {
    while (!tokens.at_end()) {
        if (tokens.take("a key") == "large_segment_size_mb") {
            tokens.expect(":");
            otherwise = take_large_segment(tokens);
        }
    }
    return otherwise;
}

}  // namespace

Settings Settings::parse(const std::string& parsed) const {
    Settings settings = *this;
    Tokens tokens(parsed);
    settings.text = parsed;
    settings.large_segment_size = find_large_segment(tokens, large_segment_size);
    settings.max_split_size = kUnlimited;
    settings.max_non_split_rounding_size = settings.large_segment_size;
    settings.garbage_collection_threshold = 0;
    settings.roundup_power2_divisions.fill(0);
    while (!tokens.at_end()) {
        const std::string key = tokens.take("a key");
        if (!has(kBooleans, key) && !has(kOthers, key)) {
            fail("Unrecognized key '" + key + "' in CUDA allocator config. The keys are " +
                 known_keys() + ".");
        }
        tokens.expect(":");
        take_option(key, tokens, settings);
        if (!tokens.at_end()) {
            tokens.expect(",");
        }
    }
    return settings;
}

}  // namespace gpuviz::allocator
