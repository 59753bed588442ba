#include "record/address_filter.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace gpuviz::record {
namespace {

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
    const std::uint64_t last = std::min((address + size - 1) >> page_bits, pages - 1);
    for (std::uint64_t page = address >> page_bits; page <= last; ++page) {
        words_[page / 64].fetch_or(std::uint64_t{1} << (page % 64), std::memory_order_relaxed);
    }
}

}  // namespace gpuviz::record
