#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace gpuviz::formats {

class PickleValue;

// The items of a list, a tuple, a set or a dict, whose keys and values alternate. A reader may
// replace the items by a mark, to recognize a list that is used twice.
struct PickleItems {
    static constexpr std::uint32_t marked = 0xFFFFFFFF;

    PickleValue* first = nullptr;
    std::uint32_t count = 0;
    std::uint32_t capacity = 0;  // `marked`: count is the mark

    [[nodiscard]] std::span<const PickleValue> items() const noexcept;
    [[nodiscard]] bool is_marked() const noexcept { return capacity == marked; }
    void mark(std::uint32_t number) noexcept {
        first = nullptr;
        count = number;
        capacity = marked;
    }
};

struct PickleText {
    std::uint32_t id;  // equal texts have one id; see PickleTexts
    std::uint32_t size;
    const char* characters;

    [[nodiscard]] std::string_view view() const noexcept { return {characters, size}; }
};

// A value of a pickle in 8 bytes: its kind, and an integer or a pointer to the rest.
class PickleValue {
  public:
    enum class Kind : std::uint8_t {
        none,
        boolean,
        integer,
        large_integer,  // outside of the 60 bits that fit
        floating,
        text,
        list,
        tuple,
        dict,
        other,  // bytes, sets, integers of more than 64 bits: not used in snapshots
    };

    PickleValue() noexcept : PickleValue(Kind::none, 0) {}
    static PickleValue of_boolean(bool value) noexcept { return {Kind::boolean, value ? 1U : 0U}; }
    static PickleValue of_integer(std::int64_t value) noexcept {
        return {Kind::integer, static_cast<std::uint64_t>(value)};
    }
    static PickleValue at(Kind kind, const void* place) noexcept {
        return {kind, reinterpret_cast<std::uint64_t>(place)};
    }
    static bool fits(std::int64_t value) noexcept {
        return value >= -(std::int64_t{1} << 59) && value < std::int64_t{1} << 59;
    }

    [[nodiscard]] Kind kind() const noexcept { return static_cast<Kind>(bits_ >> 60); }
    [[nodiscard]] bool boolean() const noexcept { return payload() != 0; }
    [[nodiscard]] std::int64_t integer() const noexcept {
        return static_cast<std::int64_t>(bits_ << 4) >> 4;
    }
    [[nodiscard]] std::uint64_t large_integer() const noexcept { return *as<std::uint64_t>(); }
    [[nodiscard]] double floating() const noexcept { return *as<double>(); }
    [[nodiscard]] const PickleText* text() const noexcept { return as<PickleText>(); }
    [[nodiscard]] PickleItems* items() const noexcept { return as<PickleItems>(); }

  private:
    PickleValue(Kind kind, std::uint64_t payload) noexcept
        : bits_(static_cast<std::uint64_t>(kind) << 60 | (payload & (~std::uint64_t{0} >> 4))) {}
    [[nodiscard]] std::uint64_t payload() const noexcept { return bits_ << 4 >> 4; }
    template <typename Place>
    [[nodiscard]] Place* as() const noexcept {
        return reinterpret_cast<Place*>(payload());
    }

    std::uint64_t bits_;
};
static_assert(sizeof(PickleValue) == 8);

inline std::span<const PickleValue> PickleItems::items() const noexcept {
    return {first, is_marked() ? 0 : count};
}

// Memory for the values of one pickle, freed as a whole.
class PickleArena {
  public:
    // Throws FormatError, naming `place`, where more than `limit` bytes are needed.
    explicit PickleArena(std::uint64_t limit) : limit_(limit) {}
    PickleArena(const PickleArena&) = delete;
    PickleArena& operator=(const PickleArena&) = delete;

    // Uninitialized memory for `count` objects.
    template <typename Object>
    Object* take(std::size_t count) {
        static_assert(alignof(Object) <= 8);
        return reinterpret_cast<Object*>(take_words((count * sizeof(Object) + 7) / 8));
    }
    // Counts memory allocated elsewhere.
    void charge(std::uint64_t bytes);

  private:
    std::uint64_t* take_words(std::size_t words);

    std::uint64_t limit_;
    std::uint64_t used_ = 0;
    std::vector<std::unique_ptr<std::uint64_t[]>> chunks_;
    std::uint64_t* next_ = nullptr;
    std::size_t left_ = 0;
};

}  // namespace gpuviz::formats
