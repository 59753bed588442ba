#pragma once

#include <cstdint>

#include "allocator/size_classes.hpp"
#include "device/device.hpp"

namespace gpuviz::allocator {

struct AddressRange {
    device::Address address;
    std::uint64_t size;
};

// A range of addresses for one stream and pool, larger than the device; pages are mapped as needed.
// The destructor releases the range.
class ExpandableSegment {
  public:
    ExpandableSegment(device::Device& device, device::StreamHandle stream, std::uint64_t page)
        : device_(device),
          stream_(stream),
          page_(page),
          size_(round_up(device.total_memory() + device.total_memory() / 8, page)),
          address_(device.reserve_range(size_)) {}
    ExpandableSegment(const ExpandableSegment&) = delete;
    ExpandableSegment& operator=(const ExpandableSegment&) = delete;
    ~ExpandableSegment() { device_.release_range(address_, size_); }

    [[nodiscard]] device::Address address() const noexcept { return address_; }
    [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
    [[nodiscard]] bool contains(device::Address at) const noexcept { return at - address_ < size_; }

    // Maps the range, widened to whole pages. Size 0: out of memory, nothing was mapped.
    [[nodiscard]] AddressRange map(AddressRange range) {
        const AddressRange pages = between(left(range.address), right(range.address + range.size));
        return device_.map(pages.address, pages.size, page_) ? pages
                                                             : AddressRange{pages.address, 0};
    }

    // The pages that lie completely inside the range.
    [[nodiscard]] AddressRange pages_in(AddressRange range) const noexcept {
        return between(right(range.address), left(range.address + range.size));
    }

    // Unmaps these pages, once the segment's stream is idle.
    AddressRange unmap(AddressRange range) {
        const AddressRange pages = pages_in(range);
        if (pages.size > 0) {
            device_.synchronize_stream(stream_);
            device_.unmap(pages.address, pages.size, page_);
        }
        return pages;
    }

  private:
    [[nodiscard]] device::Address left(device::Address at) const noexcept {
        return address_ + (at - address_) / page_ * page_;
    }
    [[nodiscard]] device::Address right(device::Address at) const noexcept {
        return address_ + round_up(at - address_, page_);
    }
    [[nodiscard]] static AddressRange between(device::Address first,
                                              device::Address last) noexcept {
        return {first, last > first ? last - first : 0};
    }

    device::Device& device_;
    device::StreamHandle stream_;
    std::uint64_t page_;
    std::uint64_t size_;
    device::Address address_;
};

}  // namespace gpuviz::allocator
