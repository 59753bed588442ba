#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "hazards/clock.hpp"

namespace gpuviz::hazards {

using OperationId = std::uint64_t;
using BlockId = std::uint64_t;  // 0: none

// Ascending by strength: an operation has the strongest of its modes at each byte.
enum class Mode : std::uint8_t { read, unknown, atomic, write };

// Bytes from `start` to `stop`. If the extent is not known, `stop` is an upper bound of it; 0
// stands for the end of the block.
struct Access {
    BlockId block = 0;
    Mode mode = Mode::unknown;
    bool is_exact = true;
    std::uint64_t start = 0;
    std::uint64_t stop = 0;
    std::uint64_t pointer = 0;  // where an access of unknown extent begins
};

// The last access of its stream in its mode to some bytes.
struct PastAccess {
    PastAccess(OperationId by, Moment at, const Access& access)
        : operation(by),
          index(at.index),
          block(access.block),
          pointer(access.pointer),
          slot(at.slot),
          mode(access.mode),
          is_exact(access.is_exact) {}
    [[nodiscard]] Moment moment() const noexcept { return {slot, index}; }

    OperationId operation;
    std::uint64_t index;
    BlockId block;
    std::uint64_t pointer;
    Slot slot;
    Mode mode;
    bool is_exact;
};
static_assert(sizeof(PastAccess) == 40);  // most of the engine's memory

// Bytes with the same past.
struct Piece {
    std::uint64_t start;
    std::uint64_t stop;
    std::vector<PastAccess> past;
};

// What later owners of released memory wait for.
struct Release {
    Clock recorded;     // events of record_stream
    Clock freed_async;  // what a stream-ordered free is ordered after, and the free
};

// Contiguous memory that belongs to one block, or to none.
struct Extent {
    std::uint64_t start;
    std::uint64_t stop;
    BlockId owner = 0;
    std::shared_ptr<const Release> release;  // of the last owner; may be null
    std::vector<Piece> pieces;               // ascending; bytes between were never accessed
};

// The past accesses of memory. Survives its owners, until nothing can be unordered with it.
//
// Not thread-safe. Addresses are at most 2**63, so that ends do not overflow.
class History {
  public:
    // Memory of a new owner, with its past. `release` is called for what its earlier owners left.
    // Throws std::invalid_argument if another block owns some of it.
    template <typename Released>
    Extent& occupy(std::uint64_t start, std::uint64_t stop, BlockId owner, Released&& release) {
        std::vector<std::shared_ptr<const Release>> releases;
        Extent& extent = occupy(start, stop, owner, releases);
        for (const auto& each : releases) release(*each);
        return extent;
    }
    void vacate(Extent& extent, std::shared_ptr<const Release> release);
    // Forgets memory that has no owner.
    void forget_vacant(std::uint64_t start, std::uint64_t stop);
    // Forgets accesses and vacant memory with which nothing can be unordered any more.
    template <typename IsSettled>
    void forget_settled(IsSettled&& is_settled);
    [[nodiscard]] std::size_t extent_count() const noexcept { return extents_.size(); }

    // Calls `visit` with the extents that overlap the bytes, which gaps become on request.
    template <typename Visit>
    void for_each_extent(std::uint64_t start, std::uint64_t stop, bool fill_gaps, Visit&& visit);

    // Calls `visit(past, start, stop)` for each past access to the bytes.
    template <typename Visit>
    static void for_each_past(const Extent& extent, std::uint64_t start, std::uint64_t stop,
                              Visit&& visit);
    // Adds an access to the bytes, and forgets those that it supersedes.
    static void add(Extent& extent, std::uint64_t start, std::uint64_t stop,
                    const PastAccess& access);

  private:
    using Extents = std::map<std::uint64_t, Extent>;

    Extent& occupy(std::uint64_t start, std::uint64_t stop, BlockId owner,
                   std::vector<std::shared_ptr<const Release>>& releases);
    Extents::iterator first_overlapping(std::uint64_t start);
    void split_vacant(std::uint64_t address);

    Extents extents_;
};

template <typename IsSettled>
void History::forget_settled(IsSettled&& is_settled) {
    for (auto each = extents_.begin(); each != extents_.end();) {
        Extent& extent = each->second;
        for (Piece& piece : extent.pieces) {
            std::erase_if(piece.past, [&](const PastAccess& past) { return is_settled(past); });
        }
        std::erase_if(extent.pieces, [](const Piece& piece) { return piece.past.empty(); });
        if (extent.release && is_settled(*extent.release)) extent.release.reset();
        const bool is_empty = extent.owner == 0 && extent.pieces.empty() && !extent.release;
        each = is_empty ? extents_.erase(each) : std::next(each);
    }
}

template <typename Visit>
void History::for_each_extent(std::uint64_t start, std::uint64_t stop, bool fill_gaps,
                              Visit&& visit) {
    auto each = first_overlapping(start);
    while (start < stop) {
        const bool is_there = each != extents_.end() && each->second.start < stop;
        const std::uint64_t next = is_there ? std::max(each->second.start, start) : stop;
        if (start < next && fill_gaps) {
            visit(extents_.emplace(start, Extent{start, next, 0, {}, {}}).first->second);
        }
        if (!is_there) return;
        start = each->second.stop;
        visit(each->second);
        ++each;
    }
}

template <typename Visit>
void History::for_each_past(const Extent& extent, std::uint64_t start, std::uint64_t stop,
                            Visit&& visit) {
    auto each = extent.pieces.begin();
    if (extent.pieces.size() > 8) {
        each = std::partition_point(each, extent.pieces.end(),
                                    [&](const Piece& piece) { return piece.stop <= start; });
    }
    for (; each != extent.pieces.end() && each->start < stop; ++each) {
        if (each->stop <= start) continue;
        for (const PastAccess& past : each->past) {
            visit(past, std::max(start, each->start), std::min(stop, each->stop));
        }
    }
}

}  // namespace gpuviz::hazards
