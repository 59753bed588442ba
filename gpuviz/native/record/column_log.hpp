#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "record/columns.hpp"

namespace gpuviz::record {

// A table to which any thread appends rows, and which is taken in chunks.
template <typename Row>
class ColumnLog {
  public:
    static constexpr std::size_t rows_per_chunk = std::size_t{1} << 16;

    // If out of memory, the row is counted as dropped. Calls `also` with the lock of the table.
    template <typename Also>
    void append(const Row& row, const Also& also) noexcept {
        const std::lock_guard lock(mutex_);
        also();
        try {
            if (open_.rows() == open_.capacity()) {
                Columns<Row> next(rows_per_chunk);
                if (open_.capacity() != 0) {
                    full_.push_back(std::move(open_));
                }
                open_ = std::move(next);
            }
        } catch (const std::bad_alloc&) {
            ++dropped_;
            return;
        }
        open_.append(row);
        ++rows_;
    }
    void append(const Row& row) noexcept {
        append(row, [] {});
    }

    // Full chunks, oldest first; with `flush` also the incomplete one.
    [[nodiscard]] std::vector<Columns<Row>> take(bool flush) {
        const std::lock_guard lock(mutex_);
        if (flush && open_.rows() != 0) {
            full_.push_back(Columns<Row>::tight_copy(open_));
            open_.clear();
        }
        return std::exchange(full_, {});
    }

    // The number of rows appended so far.
    [[nodiscard]] std::uint64_t rows() const noexcept {
        const std::lock_guard lock(mutex_);
        return rows_;
    }
    [[nodiscard]] std::uint64_t dropped() const noexcept {
        const std::lock_guard lock(mutex_);
        return dropped_;
    }
    // Memory in use.
    [[nodiscard]] std::size_t bytes() const noexcept {
        const std::lock_guard lock(mutex_);
        return open_.bytes() + full_.size() * rows_per_chunk * Columns<Row>::bytes_per_row;
    }

  private:
    mutable std::mutex mutex_;
    Columns<Row> open_{0};
    std::vector<Columns<Row>> full_;
    std::uint64_t rows_ = 0;
    std::uint64_t dropped_ = 0;
};

}  // namespace gpuviz::record
