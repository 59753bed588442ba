#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace gpuviz::record {

// The table `strings`, which assigns equal texts the same id. Thread-safe.
class StringTable {
  public:
    static constexpr std::size_t max_length = 4096;  // bytes; longer texts are cut

    // 1, 2, ...; 0 for an empty text, a null pointer, or if out of memory.
    [[nodiscard]] std::uint32_t intern(const char* text) noexcept;
    [[nodiscard]] std::uint32_t intern(std::string_view text) noexcept;
    // The same for a symbol, whose text is its demangled name.
    [[nodiscard]] std::uint32_t intern_symbol(const char* symbol) noexcept;

    // The texts `first_id`, `first_id + 1`, ...; raw bytes in an unknown encoding.
    [[nodiscard]] std::vector<std::string> from(std::uint32_t first_id) const;

  private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const noexcept {
            return std::hash<std::string_view>{}(text);
        }
    };
    using Ids = std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>>;

    [[nodiscard]] std::uint32_t text_id(std::string_view text);

    mutable std::mutex mutex_;
    Ids ids_;
    Ids symbol_ids_;
    std::vector<std::string> texts_;
};

}  // namespace gpuviz::record
