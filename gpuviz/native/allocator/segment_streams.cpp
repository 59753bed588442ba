#include "allocator/segment_streams.hpp"

#include <iterator>

namespace gpuviz::allocator {

using device::Address;
using device::StreamHandle;

void SegmentStreams::add(Address address, std::uint64_t size, StreamHandle stream) {
    segments_[address] = {address + size, stream};
    update_only();
}

void SegmentStreams::remove(Address address) {
    segments_.erase(address);
    update_only();
}

std::optional<StreamHandle> SegmentStreams::owner_of(Address address) const {
    const auto after = segments_.upper_bound(address);
    if (after == segments_.begin() || address >= std::prev(after)->second.end) {
        return std::nullopt;
    }
    return std::prev(after)->second.stream;
}

void SegmentStreams::update_only() {
    StreamHandle only = no_stream;
    for (const auto& [address, segment] : segments_) {
        if (only != no_stream && segment.stream != only) {
            only = no_stream;
            break;
        }
        only = segment.stream;
    }
    only_.store(only, std::memory_order_relaxed);
}

}  // namespace gpuviz::allocator
