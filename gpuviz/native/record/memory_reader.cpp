#include "record/memory_reader.hpp"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

namespace gpuviz::record {

MemoryReader::MemoryReader() noexcept {
    restart();
    if (!is_usable()) {
        file_ = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    }
}

MemoryReader::~MemoryReader() {
    if (file_ >= 0) {
        close(file_);
    }
}

bool MemoryReader::is_usable() noexcept {
    const std::uint64_t expected = 0x9e3779b97f4a7c15;
    restart();
    const auto found = load<std::uint64_t>(reinterpret_cast<std::uint64_t>(&expected), 0);
    restart();
    return found == expected;
}

void MemoryReader::restart() noexcept {
    count_ = 0;
    last_ = 0;
    has_failed_ = false;
}

const std::byte* MemoryReader::find(std::uint64_t address, std::size_t size) noexcept {
    const std::uint64_t start = address & ~std::uint64_t{page_bytes - 1};
    const std::size_t inside = address - start;
    if (has_failed_ || inside + size > page_bytes) {
        has_failed_ = true;
        return nullptr;
    }
    if (count_ != 0 && pages_[last_].address == start) {
        return &pages_[last_].bytes[inside];
    }
    for (std::size_t page = 0; page < count_; ++page) {
        if (pages_[page].address == start) {
            last_ = page;
            return &pages_[page].bytes[inside];
        }
    }
    if (count_ == most_pages) {
        has_failed_ = true;
        return nullptr;
    }
    pages_[count_].address = start;
    if (!read(pages_[count_])) {
        has_failed_ = true;
        return nullptr;
    }
    last_ = count_++;
    return &pages_[last_].bytes[inside];
}

bool MemoryReader::read(Page& page) noexcept {
    if (file_ >= 0) {
        return pread(file_, page.bytes.data(), page_bytes, off_t(page.address)) ==
               ssize_t{page_bytes};
    }
    const iovec into{page.bytes.data(), page_bytes};
    const iovec from{reinterpret_cast<void*>(page.address), page_bytes};
    return process_vm_readv(getpid(), &into, 1, &from, 1, 0) == ssize_t{page_bytes};
}

}  // namespace gpuviz::record
