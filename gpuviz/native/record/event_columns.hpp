#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "record/memory_event.hpp"

namespace gpuviz {

// Rows of the table `memory_events` (gpuviz/tables.py), a column at a time, in one allocation.
class EventColumns {
  public:
    static constexpr std::size_t bytes_per_row = 55;

    // Room for `capacity` rows; pages are not touched before rows are written.
    explicit EventColumns(std::size_t capacity);

    // The rows of `other`, without its spare room.
    [[nodiscard]] static EventColumns tight_copy(const EventColumns& other);

    // Needs rows() < capacity(). `start_ns` is subtracted from the event's time.
    void append(const MemoryEvent& event, std::int64_t start_ns, std::uint32_t stream) noexcept;
    void clear() noexcept { rows_ = 0; }

    [[nodiscard]] std::size_t rows() const noexcept { return rows_; }
    [[nodiscard]] std::size_t capacity() const noexcept { return capacity_; }
    [[nodiscard]] std::size_t bytes() const noexcept { return rows_ * bytes_per_row; }

    // Calls visit(name, pointer to the first of rows() values) for each column in table order.
    template <typename Visit>
    void for_each_column(Visit&& visit) const {
        visit("time", time_);
        visit("action", action_);
        visit("address", address_);
        visit("size", size_);
        visit("requested_size", requested_size_);
        visit("device", device_);
        visit("stream", stream_);
        visit("pool", pool_);
        visit("stack", stack_);
        visit("thread", thread_);
        visit("range", range_);
    }

  private:
    std::size_t capacity_;
    std::size_t rows_ = 0;
    std::unique_ptr<std::byte[]> storage_;
    std::int64_t* time_;
    std::uint64_t* address_;
    std::int64_t* size_;
    std::int64_t* requested_size_;
    std::uint32_t* stream_;
    std::uint32_t* pool_;
    std::uint32_t* stack_;
    std::uint32_t* thread_;
    std::uint32_t* range_;
    std::int16_t* device_;
    std::int8_t* action_;
};

}  // namespace gpuviz
