#include "simulation/scheduled_device.hpp"

#include <mutex>

#include "record/thread_id.hpp"

namespace gpuviz::simulation {

using device::Address;
using device::EventHandle;
using device::SimulatedDevice;

namespace {

// The site of the allocator's calls, without a call stack, because the allocator holds its lock.
record::CallSite this_thread() noexcept { return {.thread = record::current_thread_id()}; }

}  // namespace

std::optional<Address> ScheduledDevice::allocate(std::uint64_t size) {
    const std::optional<Address> address = SimulatedDevice::allocate(size);
    gpu_.allocated("cuMemAlloc_v2", address.value_or(0), size);
    return address;
}

void ScheduledDevice::free(Address address, std::uint64_t size) {
    gpu_.release("cuMemFree_v2", address, size, true);
    SimulatedDevice::free(address, size);
}

bool ScheduledDevice::map(Address address, std::uint64_t size, std::uint64_t page) {
    const bool mapped = SimulatedDevice::map(address, size, page);
    gpu_.allocated("cuMemMap", mapped ? address : 0, size);
    return mapped;
}

void ScheduledDevice::unmap(Address address, std::uint64_t size, std::uint64_t page) {
    gpu_.release("cuMemUnmap", address, size, false);
    SimulatedDevice::unmap(address, size, page);
}

std::optional<Address> ScheduledDevice::allocate_host(std::uint64_t size) {
    std::optional<Address> address;
    {
        const std::lock_guard lock(mutex_);
        address = SimulatedDevice::allocate_host(size);
    }
    gpu_.allocated("cuMemHostAlloc", address.value_or(0), size, record::MemoryKind::pinned);
    return address;
}

void ScheduledDevice::free_host(Address address, std::uint64_t size) {
    gpu_.release("cuMemFreeHost", address, size, true, record::MemoryKind::pinned);
    const std::lock_guard lock(mutex_);
    SimulatedDevice::free_host(address, size);
}

// The contents change immediately, unlike the stream's.
bool ScheduledDevice::fill(Address address, std::uint64_t size, std::uint8_t value,
                           device::StreamHandle stream) {
    gpu_.fill(stream, address, size, this_thread());
    return SimulatedDevice::fill(address, size, value, stream);
}

EventHandle ScheduledDevice::idle_event() {
    {
        const std::lock_guard lock(mutex_);
        if (!idle_events_.empty()) {
            const EventHandle event = idle_events_.back();
            idle_events_.pop_back();
            return event;
        }
    }
    return gpu_.create_event(this_thread());
}

void ScheduledDevice::release(EventHandle event) {
    const std::lock_guard lock(mutex_);
    idle_events_.push_back(event);
}

EventHandle ScheduledDevice::record_event(device::StreamHandle stream) {
    const EventHandle event = idle_event();
    if (!gpu_.has_stream(stream)) {
        // It was destroyed, possibly with pending work; waiting for everything is safe.
        gpu_.synchronize_device(this_thread());
        stream = 0;
    }
    gpu_.record_event(event, stream, this_thread());
    return event;
}

void ScheduledDevice::synchronize(EventHandle event) {
    gpu_.synchronize_event(event, this_thread());
}

void ScheduledDevice::synchronize_stream(device::StreamHandle stream) {
    if (gpu_.is_abandoned()) {
        return;
    }
    if (gpu_.has_stream(stream)) {
        gpu_.synchronize_stream(stream, this_thread());
    } else {
        gpu_.synchronize_device(this_thread());
    }
}

}  // namespace gpuviz::simulation
