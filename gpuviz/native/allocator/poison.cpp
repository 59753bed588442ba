#include "allocator/poison.hpp"

#include <algorithm>
#include <utility>

namespace gpuviz::allocator {

using device::Address;
using device::Samples;

namespace {

constexpr std::uint8_t pattern = 0xFF;  // in floating-point numbers: NaN
constexpr std::size_t slot_bytes = 4096;
constexpr std::size_t slots = Poison::buffer_bytes / slot_bytes;
constexpr std::uint32_t word = 8;
constexpr std::size_t most_found = 1000;

// All bytes if they fit into a slot, else words at equal distances, the first and last included.
Samples samples_of(Address start, std::uint64_t size) {
    if (size <= slot_bytes) {
        return {.first = start, .stride = size, .width = std::uint32_t(size), .count = 1};
    }
    constexpr std::uint32_t count = slot_bytes / word;
    return {.first = start,
            .stride = (size - word) / (count - 1) / word * word,
            .width = word,
            .count = count};
}

// The result of `enqueue`; false if the device fails, which the program finds out itself.
template <typename Enqueue>
bool unless_failed(Enqueue enqueue) {
    try {
        return enqueue();
    } catch (const device::DeviceError&) {
        return false;
    }
}

}  // namespace

Poison::Poison(device::Device& device, UseTracker& tracker, void* buffer)
    : device_(device), tracker_(tracker), buffer_(static_cast<std::byte*>(buffer)) {
    for (std::size_t slot = slots; slot > 0; --slot) {
        free_slots_.push_back(slot - 1);
    }
}

void Poison::fill(const Block& block, std::uint32_t freed) {
    const bool is_filled = unless_failed([&] {
        return tracker_.run_on(block.stream, [&] {
            return device_.fill(block.address, block.size, pattern, block.stream);
        });
    });
    if (!is_filled) {
        ++skipped_;
        return;
    }
    filled_[block.address] = {.end = block.address + block.size,
                              .write = {.address = block.address,
                                        .size = block.size,
                                        .offset = 0,
                                        .allocated = block.stack,
                                        .freed = freed,
                                        .reused = 0,
                                        .stream = block.stream}};
}

void Poison::check(const Block& block, std::uint32_t reused) {
    const Address end = block.address + block.size;
    auto entry = filled_.upper_bound(block.address);
    if (entry != filled_.begin() && std::prev(entry)->second.end > block.address) {
        --entry;
    }
    while (entry != filled_.end() && entry->first < end) {
        const auto [start, filled] = *entry;
        entry = filled_.erase(entry);
        if (start < block.address) {
            filled_[start] = {.end = block.address, .write = filled.write};
        }
        if (filled.end > end) {
            entry = filled_.insert_or_assign(end, Filled{filled.end, filled.write}).first;
        }
        WriteAfterFree write = filled.write;
        write.reused = reused;
        enqueue_check(std::max(start, block.address), std::min(filled.end, end), write);
    }
}

void Poison::enqueue_check(Address start, Address end, const WriteAfterFree& write) {
    compare();
    if (free_slots_.empty()) {
        ++skipped_;
        return;
    }
    const std::size_t slot = free_slots_.back();
    const Samples samples = samples_of(start, end - start);
    device::EventHandle event = 0;
    const bool is_enqueued = unless_failed([&] {
        return tracker_.run_on(write.stream, [&] {
            if (!device_.read(samples, buffer_ + slot * slot_bytes, write.stream)) {
                return false;
            }
            event = device_.record_event(write.stream);
            return true;
        });
    });
    if (!is_enqueued) {
        ++skipped_;
        return;
    }
    free_slots_.pop_back();
    checks_.push_back({event, slot, samples, write});
}

void Poison::forget(Address address, std::uint64_t size) {
    const Address end = address + size;
    auto entry = filled_.upper_bound(address);
    if (entry != filled_.begin() && std::prev(entry)->second.end > address) {
        --entry;
    }
    while (entry != filled_.end() && entry->first < end) {
        const auto [start, filled] = *entry;
        entry = filled_.erase(entry);
        if (start < address) {
            filled_[start] = {.end = address, .write = filled.write};
        }
        if (filled.end > end) {
            filled_[end] = filled;
            return;
        }
    }
}

void Poison::compare(bool waits) {
    const auto has_arrived = [&](const Check& each) {
        if (waits) {
            device_.synchronize(each.event);
            return true;
        }
        return device_.is_complete(each.event);
    };
    std::erase_if(checks_, [&](const Check& each) {
        if (!unless_failed([&] { return has_arrived(each); })) {
            return false;
        }
        compare(each);
        device_.release(each.event);
        free_slots_.push_back(each.slot);
        return true;
    });
}

void Poison::compare(const Check& check) {
    const std::byte* const bytes = buffer_ + check.slot * slot_bytes;
    const std::size_t count = std::size_t{check.samples.width} * check.samples.count;
    const std::byte* const changed = std::find_if(
        bytes, bytes + count, [](std::byte each) { return each != std::byte{pattern}; });
    if (changed == bytes + count || found_.size() >= most_found) {
        return;
    }
    const auto at = std::uint64_t(changed - bytes);
    WriteAfterFree write = check.write;
    write.offset = check.samples.first + at / check.samples.width * check.samples.stride +
                   at % check.samples.width - write.address;
    found_.push_back(write);
}

}  // namespace gpuviz::allocator
