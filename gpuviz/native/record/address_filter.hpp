#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace gpuviz::record {

// A filter of addresses that may belong to allocated memory: a bit for each 2 MiB, set and never
// cleared. Thread-safe; a query is one load.
class AddressFilter {
  public:
    // Throws std::bad_alloc without address space for the bits (32 MiB, of which only used pages
    // are touched).
    AddressFilter();
    AddressFilter(const AddressFilter&) = delete;
    AddressFilter& operator=(const AddressFilter&) = delete;
    ~AddressFilter();

    void add(std::uint64_t address, std::uint64_t size) noexcept;
    [[nodiscard]] bool may_contain(std::uint64_t address) const noexcept {
        const std::uint64_t page = address >> page_bits;
        return page < pages &&
               ((words_[page / 64].load(std::memory_order_relaxed) >> (page % 64)) & 1) != 0;
    }

  private:
    static constexpr unsigned page_bits = 21;
    static constexpr std::uint64_t pages = std::uint64_t{1} << (49 - page_bits);

    std::atomic<std::uint64_t>* words_;
};

}  // namespace gpuviz::record
