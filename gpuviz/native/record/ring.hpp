#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace gpuviz::record {

// Queue of fixed capacity between one producer and one consumer; neither ever waits.
//
// The producer may be several threads if a lock serializes their pushes; likewise the consumer.
template <typename Record>
    requires std::is_trivially_copyable_v<Record>
class Ring {
  public:
    explicit Ring(std::size_t capacity) : mask_(capacity - 1) {
        check_capacity(capacity);
        slots_ = std::make_unique_for_overwrite<Record[]>(capacity);
    }

    static void check_capacity(std::size_t capacity) {
        if (!std::has_single_bit(capacity)) {
            throw std::invalid_argument("The capacity of a ring must be a power of two, got " +
                                        std::to_string(capacity) + ".");
        }
    }

    // False: the ring is full and the record was not added.
    [[nodiscard]] bool push(const Record& record) noexcept {
        const std::size_t head = head_.load(std::memory_order_relaxed);
        if (head - seen_tail_ > mask_) {
            seen_tail_ = tail_.load(std::memory_order_acquire);
            if (head - seen_tail_ > mask_) {
                return false;
            }
        }
        slots_[head & mask_] = record;
        head_.store(head + 1, std::memory_order_release);
        return true;
    }

    // Passes the queued records to `consume` as at most two spans in order; it returns the number
    // of records that it consumed, and the rest stays queued. Returns the total number consumed.
    template <typename Consume>
    std::size_t drain(Consume&& consume) {
        const std::size_t tail = tail_.load(std::memory_order_relaxed);
        const std::size_t count = head_.load(std::memory_order_acquire) - tail;
        const std::size_t first = std::min(count, capacity() - (tail & mask_));
        std::size_t taken = consume(std::span<const Record>(&slots_[tail & mask_], first));
        if (taken == first && count != first) {
            taken += consume(std::span<const Record>(&slots_[0], count - first));
        }
        tail_.store(tail + taken, std::memory_order_release);
        return taken;
    }

    [[nodiscard]] std::size_t capacity() const noexcept { return mask_ + 1; }

  private:
    std::size_t mask_;
    std::unique_ptr<Record[]> slots_;
    // Total numbers of records pushed and drained, on separate cache lines.
    alignas(64) std::atomic<std::size_t> head_{0};
    std::size_t seen_tail_ = 0;  // the last tail_ that the producer read
    alignas(64) std::atomic<std::size_t> tail_{0};
};

}  // namespace gpuviz::record
