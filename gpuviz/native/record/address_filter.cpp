#include "record/address_filter.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace gpuviz::record {
namespace {

constexpr std::uint64_t bits = 64;  // of a word

constexpr std::size_t bytes_of(std::uint64_t pages) { return pages / 8; }

}  // namespace

AddressFilter::AddressFilter() {
    void* zeros = mmap(nullptr, bytes_of(pages), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (zeros == MAP_FAILED) {
        throw std::bad_alloc();
    }
    words_ = static_cast<std::atomic<std::uint64_t>*>(zeros);
}

AddressFilter::~AddressFilter() { munmap(words_, bytes_of(pages)); }

void AddressFilter::add(std::uint64_t address, std::uint64_t size) noexcept {
    if (size == 0) {
        return;
    }
    const std::uint64_t end = std::min(((address + size - 1) >> page_bits) + 1, pages);
    for (std::uint64_t page = address >> page_bits; page < end;) {
        const std::uint64_t count = std::min(bits - page % bits, end - page);
        const std::uint64_t mask = (~std::uint64_t{0} >> (bits - count)) << (page % bits);
        std::atomic<std::uint64_t>& word = words_[page / bits];
        // Nearly all blocks lie in known segments: their bits are not written again.
        if ((word.load(std::memory_order_relaxed) & mask) != mask) {
            word.fetch_or(mask, std::memory_order_relaxed);
        }
        page += count;
    }
}

}  // namespace gpuviz::record
