#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "formats/torch_history.hpp"

namespace gpuviz::formats {

// Sizes are signed in tables, and unsigned in sums with addresses.
inline std::int64_t bytes(std::uint64_t size) noexcept { return static_cast<std::int64_t>(size); }
inline std::uint64_t unsigned_of(std::int64_t size) noexcept {
    return static_cast<std::uint64_t>(size);
}

// The memory of one device while a trace is traversed backwards and then forwards.
class TorchDevice {
  public:
    TorchDevice(const TorchSnapshot& snapshot, const TorchRounding& rounding, TorchHistory& history,
                std::int16_t device);
    TorchDevice(const TorchDevice&) = delete;
    TorchDevice& operator=(const TorchDevice&) = delete;

    // To be called in this order.
    void undo(std::size_t first, std::size_t last);
    void describe_before();
    void redo(std::size_t first, std::size_t last);
    void describe_after();

  private:
    // Memory from the driver: a segment, or a run of mapped pages.
    struct Home {
        std::uint64_t size;
        std::uint64_t stream;
        std::uint32_t pool;
        std::uint32_t stack;
        bool is_expandable;

        bool operator==(const Home& other) const noexcept {
            return size == other.size && stream == other.stream && pool == other.pool &&
                   is_expandable == other.is_expandable;
        }
    };
    struct Live {
        std::uint64_t size;
        std::int64_t requested_size;
        std::uint64_t stream;
        std::uint32_t pool;
        std::uint32_t stack;
        bool is_pending;
        bool is_exact;        // the size is certain
        std::uint64_t least;  // the size if it was split off
        std::uint64_t limit;  // the lowest start of the next block during its lifetime
    };
    using Homes = std::map<std::uint64_t, Home>;
    using Lives = std::map<std::uint64_t, Live>;

    void take_segments();

    void undo_alloc(std::size_t row);
    void undo_free(std::size_t row, bool completed);
    void undo_segment_alloc(std::size_t row);
    void undo_segment_free(std::size_t row);
    void undo_map(std::size_t row);
    void undo_unmap(std::size_t row);
    void settle(Lives::iterator block);
    [[nodiscard]] bool make_room(std::uint64_t address, std::uint64_t end);

    void redo_alloc(std::size_t row);
    void redo_free(std::size_t row);
    [[nodiscard]] std::uint64_t block_size(std::size_t row, Homes::const_iterator home) const;
    void notice_setting(std::size_t row);

    [[nodiscard]] bool is_taken(std::uint64_t address, std::uint64_t end);
    [[nodiscard]] bool is_reserved(std::uint64_t address, std::uint64_t end);
    void forget_live(std::uint64_t address, std::uint64_t end);

    [[nodiscard]] std::uint64_t rounded(std::size_t row) const;
    [[nodiscard]] std::uint64_t end(std::size_t row) const;
    [[nodiscard]] std::uint32_t pool_code(std::uint32_t pool, bool is_large) const;
    // From the event; by size if the event does not contain it.
    [[nodiscard]] std::uint32_t pool_of(std::size_t row, std::uint64_t size) const;
    [[nodiscard]] std::uint32_t run_pool(std::size_t row);
    void emit_home(std::vector<TorchRow>& rows, bool added, const Homes::value_type& home) const;
    void emit_live(std::vector<TorchRow>& rows, record::Action action,
                   const Lives::value_type& live) const;
    void emit_free(const Lives::value_type& live);

    const TorchSnapshot* snapshot_;
    const TorchEvents* events_;
    const TorchRounding* rounding_;
    TorchHistory* history_;
    std::int16_t device_;
    bool is_expandable_ = false;  // whether the setting is on, as inferred from events
    Homes homes_;
    Lives lives_;
    Homes last_homes_;  // those of the snapshot
    Lives last_lives_;
};

}  // namespace gpuviz::formats
