#include "record/event_columns.hpp"

#include <algorithm>

namespace gpuviz {

EventColumns::EventColumns(std::size_t capacity)
    : capacity_(capacity),
      storage_(std::make_unique_for_overwrite<std::byte[]>(capacity * bytes_per_row)) {
    std::byte* next = storage_.get();
    const auto place = [&]<typename Value>(Value*& column) {
        column = reinterpret_cast<Value*>(next);
        next += capacity * sizeof(Value);
    };
    // Widest first, so that every column is aligned.
    place(time_);
    place(address_);
    place(size_);
    place(requested_size_);
    place(stream_);
    place(pool_);
    place(stack_);
    place(thread_);
    place(range_);
    place(device_);
    place(action_);
}

EventColumns EventColumns::tight_copy(const EventColumns& other) {
    EventColumns copy(other.rows_);
    const auto take = [&]<typename Value>(Value* to, const Value* from) {
        std::copy_n(from, other.rows_, to);
    };
    take(copy.time_, other.time_);
    take(copy.address_, other.address_);
    take(copy.size_, other.size_);
    take(copy.requested_size_, other.requested_size_);
    take(copy.stream_, other.stream_);
    take(copy.pool_, other.pool_);
    take(copy.stack_, other.stack_);
    take(copy.thread_, other.thread_);
    take(copy.range_, other.range_);
    take(copy.device_, other.device_);
    take(copy.action_, other.action_);
    copy.rows_ = other.rows_;
    return copy;
}

void EventColumns::append(const MemoryEvent& event, std::int64_t start_ns,
                          std::uint32_t stream) noexcept {
    const std::size_t row = rows_++;
    time_[row] = event.time_ns - start_ns;
    address_[row] = event.address;
    size_[row] = std::int64_t(event.size);
    requested_size_[row] = std::int64_t(event.requested_size);
    stream_[row] = stream;
    pool_[row] = event.pool;
    stack_[row] = event.stack;
    thread_[row] = event.thread;
    range_[row] = event.range;
    device_[row] = std::int16_t(event.device);
    action_[row] = std::int8_t(event.action);
}

}  // namespace gpuviz
