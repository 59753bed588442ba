#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace gpuviz::record {

// Reads memory of this process that another thread may change or unmap meanwhile, without faults.
//
// Reads whole pages and keeps the last ones, so that values of one structure are of one moment. Not
// thread-safe.
class MemoryReader {
  public:
    MemoryReader() noexcept;
    MemoryReader(const MemoryReader&) = delete;
    MemoryReader& operator=(const MemoryReader&) = delete;
    ~MemoryReader();

    // Whether the system allows it.
    [[nodiscard]] bool is_usable() noexcept;

    // The value at an address; 0 if it cannot be read, after which all others are 0 as well.
    template <typename Value>
    [[nodiscard]] Value load(std::uint64_t address, std::size_t offset) noexcept {
        static_assert(std::is_trivially_copyable_v<Value>);
        Value value{};
        if (const std::byte* const found = find(address + offset, sizeof(Value))) {
            std::memcpy(&value, found, sizeof(Value));
        }
        return value;
    }
    // Whether a value could not be read since restart().
    [[nodiscard]] bool has_failed() const noexcept { return has_failed_; }
    // Forgets all pages.
    void restart() noexcept;

  private:
    static constexpr std::size_t page_bytes = 4096;
    static constexpr std::size_t most_pages = 64;  // damaged data must not make it read for ever

    struct Page {
        std::uint64_t address;
        std::array<std::byte, page_bytes> bytes;
    };

    [[nodiscard]] const std::byte* find(std::uint64_t address, std::size_t size) noexcept;
    [[nodiscard]] bool read(Page& page) noexcept;

    std::array<Page, most_pages> pages_;
    std::size_t count_ = 0;
    std::size_t last_ = 0;
    bool has_failed_ = false;
    int file_ = -1;  // of this process's memory, where its own system call is not allowed
};

}  // namespace gpuviz::record
