#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace gpuviz::python {

// A set of the objects of the heap, one bit for each of three properties of an object.
//
// An object's id is its place in a page of 1 MiB and the page's number. Objects are at least 16
// bytes apart.
class ObjectPages {
  public:
    using Id = std::uint32_t;
    enum Bit : std::size_t { seen, node, marked };

    // Throws std::length_error for a heap of more than 64 GiB.
    [[nodiscard]] Id id_of(const void* object) {
        const auto address = reinterpret_cast<std::uint64_t>(object);
        const std::uint64_t key = address >> page_shift;
        Cached& cached = cache_[key % cache_.size()];
        if (cached.key != key) {
            const auto found = numbers_.find(key);
            cached = {key, found == numbers_.end() ? add_page(key) : found->second};
        }
        const std::uint64_t place =
            address >> object_shift & ((std::uint64_t{1} << place_bits) - 1);
        return cached.number << place_bits | static_cast<Id>(place);
    }
    [[nodiscard]] bool has(Id id, Bit bit) const noexcept {
        return (word(id, bit) >> (id & 63) & 1) != 0;
    }
    void set(Id id, Bit bit) noexcept { word(id, bit) |= std::uint64_t{1} << (id & 63); }
    void clear(Bit bit) noexcept;

  private:
    static constexpr unsigned page_shift = 20;
    static constexpr unsigned object_shift = 4;
    static constexpr unsigned place_bits = page_shift - object_shift;
    static constexpr std::size_t words = (std::size_t{1} << place_bits) / 64;
    using Page = std::array<std::array<std::uint64_t, words>, 3>;

    [[nodiscard]] std::uint64_t& word(Id id, Bit bit) const noexcept {
        return (*pages_[id >> place_bits])[bit][(id >> 6) & (words - 1)];
    }
    [[nodiscard]] Id add_page(std::uint64_t key);

    std::vector<std::unique_ptr<Page>> pages_;
    std::unordered_map<std::uint64_t, Id> numbers_;
    // A direct-mapped cache before the map.
    struct Cached {
        std::uint64_t key = ~std::uint64_t{0};
        Id number = 0;
    };
    std::array<Cached, 4096> cache_;
};

}  // namespace gpuviz::python
