#include "formats/torch_snapshot_writer.hpp"

#include <array>
#include <string_view>

#include "record/memory_event.hpp"

namespace gpuviz::formats {

using record::Action;

namespace {

// In the order of SegmentKind and BlockState.
constexpr std::array<std::string_view, 3> kind_names = {"small", "large", "unknown"};
constexpr std::array<std::string_view, 3> state_names = {"inactive", "active_allocated",
                                                         "active_pending_free"};
constexpr std::uint32_t unwritten = 0xFFFFFFFF;

// Writes values in full the first time, and by their memo number afterwards.
class Writer {
  public:
    Writer(const SnapshotToWrite& snapshot, ByteSink sink)
        : snapshot_(&snapshot),
          pickle_(std::move(sink)),
          texts_(snapshot.texts.size(), unwritten),
          frames_(snapshot.frame_lines.size(), unwritten),
          stacks_(snapshot.stack_offsets.size(), unwritten),
          pools_(snapshot.pools.size(), unwritten) {}

    void run() {
        pickle_.begin_dict();
        key(segments_key_);
        write_segments();
        key(traces_key_);
        write_traces();
        pickle_.raw(snapshot_->rest);
        pickle_.end_dict();
        pickle_.finish();
    }

  private:
    struct Constant {
        std::string_view text;
        std::uint32_t number = unwritten;
    };

    void key(Constant& constant) {
        if (constant.number != unwritten) return pickle_.recall(constant.number);
        pickle_.text(constant.text);
        constant.number = pickle_.remember();
    }
    // Whether a value has not been written yet; the caller must then memoize it.
    bool is_new(std::uint32_t number) {
        if (number != unwritten) pickle_.recall(number);
        return number == unwritten;
    }
    void text(std::uint32_t id) {
        if (id == 0) return key(empty_);
        std::uint32_t& number = texts_[id - 1];
        if (!is_new(number)) return;
        pickle_.text(snapshot_->texts[id - 1]);
        number = pickle_.remember();
    }
    void pool(std::uint32_t position) {
        std::uint32_t& number = pools_[position];
        if (!is_new(number)) return;
        pickle_.integer(snapshot_->pools[position].first);
        pickle_.integer(snapshot_->pools[position].second);
        pickle_.tuple2();
        number = pickle_.remember();
    }
    void frame(std::uint32_t id) {
        std::uint32_t& number = frames_[id - 1];
        if (!is_new(number)) return;
        pickle_.begin_dict();
        key(name_);
        text(snapshot_->frame_names[id - 1]);
        key(filename_);
        text(snapshot_->frame_files[id - 1]);
        key(line_);
        const std::int64_t line = snapshot_->frame_lines[id - 1];
        if (line < 0) {
            pickle_.unsigned_integer(static_cast<std::uint64_t>(line));
        } else {
            pickle_.integer(line);
        }
        pickle_.end_dict();
        number = pickle_.remember();
    }
    void stack(std::uint32_t id) {
        if (id == 0) return pickle_.empty_list();
        std::uint32_t& number = stacks_[id - 1];
        if (!is_new(number)) return;
        pickle_.empty_list();
        const auto first = static_cast<std::size_t>(snapshot_->stack_offsets[id - 1]);
        const auto last = static_cast<std::size_t>(snapshot_->stack_offsets[id]);
        in_batches(first, last, [this](std::size_t row) {
            if (snapshot_->stack_frames[row] != 0) frame(snapshot_->stack_frames[row]);
        });
        number = pickle_.remember();
    }
    template <typename WriteOne>
    void in_batches(std::size_t first, std::size_t last, WriteOne&& write_one) {
        for (std::size_t begin = first; begin < last; begin += PickleWriter::batch) {
            const std::size_t end = std::min<std::size_t>(last, begin + PickleWriter::batch);
            pickle_.mark();
            for (std::size_t row = begin; row < end; ++row) write_one(row);
            pickle_.end_batch();
        }
    }

    void write_traces() {
        pickle_.empty_list();
        std::size_t first = 0;
        for (const std::size_t rows : snapshot_->events.devices) {
            pickle_.mark();
            pickle_.empty_list();
            in_batches(first, first + rows, [this](std::size_t row) { write_event(row); });
            pickle_.end_batch();
            first += rows;
        }
    }
    void write_event(std::size_t row) {
        const auto action = static_cast<Action>(snapshot_->events.action[row]);
        const bool is_outside = snapshot_->events.needs_segment[row] != 0;
        if (is_outside && action == Action::alloc) write_around(row, Action::segment_alloc);
        write_entry(row, action, snapshot_->events.size[row], false);
        if (is_outside && action == Action::free_completed) write_around(row, Action::segment_free);
    }
    void write_around(std::size_t row, Action action) {
        const std::int64_t block = snapshot_->events.block_size[row];
        write_entry(row, action, block != 0 ? block : snapshot_->events.size[row], true);
    }
    void write_entry(std::size_t row, Action action, std::int64_t size, bool is_synthetic) {
        const auto& events = snapshot_->events;
        const std::int64_t block_size = events.block_size[row];
        pickle_.begin_dict();
        key(action_);
        key(actions_[static_cast<std::size_t>(action)]);
        key(action == Action::oom ? device_free_ : addr_);
        pickle_.unsigned_integer(events.address[row]);
        key(size_);
        // torch stores the rounded size of a failed request, and the requested size of a block.
        pickle_.integer(action == Action::oom && block_size != 0 ? block_size : size);
        key(stream_);
        pickle_.unsigned_integer(events.stream[row]);
        key(time_us_);
        pickle_.integer(events.time_us[row]);
        key(compile_context_);
        key(no_context_);
        key(user_metadata_);
        text(events.metadata[row]);
        key(pool_id_);
        pool(events.pool[row]);
        key(frames_key_);
        stack(events.stack[row]);
        if (events.kind[row] < 2) {
            key(pool_is_large_);
            pickle_.boolean(events.kind[row] == 1);
        }
        if (is_synthetic) {
            key(synthetic_);
            pickle_.boolean(true);
        } else if (block_size != 0) {
            key(action == Action::oom ? requested_size_ : block_size_);
            pickle_.integer(action == Action::oom ? size : block_size);
        }
        pickle_.end_dict();
    }

    void write_segments() {
        const auto& segments = snapshot_->segments;
        pickle_.empty_list();
        std::size_t block = 0;
        in_batches(0, segments.address.size(), [&](std::size_t row) {
            write_segment(row, block, block + segments.blocks[row]);
            block += segments.blocks[row];
        });
    }
    void write_segment(std::size_t row, std::size_t first, std::size_t last) {
        const auto& segments = snapshot_->segments;
        const auto& blocks = snapshot_->blocks;
        std::array<std::int64_t, 3> sizes{};  // allocated, active, requested
        for (std::size_t block = first; block < last; ++block) {
            if (blocks.state[block] == 0) continue;
            if (blocks.state[block] == 1) sizes[0] += blocks.size[block];
            sizes[1] += blocks.size[block];
            sizes[2] += blocks.requested_size[block];
        }
        pickle_.begin_dict();
        key(device_);
        pickle_.integer(segments.device[row]);
        key(address_);
        pickle_.unsigned_integer(segments.address[row]);
        key(total_size_);
        pickle_.integer(segments.size[row]);
        key(allocated_size_);
        pickle_.integer(sizes[0]);
        key(active_size_);
        pickle_.integer(sizes[1]);
        key(requested_size_);
        pickle_.integer(sizes[2]);
        key(stream_);
        pickle_.unsigned_integer(segments.stream[row]);
        key(segment_type_);
        key(kinds_[segments.kind[row]]);
        key(segment_pool_id_);
        pool(segments.pool[row]);
        key(is_expandable_);
        pickle_.boolean(segments.is_expandable[row] != 0);
        key(frames_key_);
        stack(segments.stack[row]);
        key(blocks_);
        pickle_.empty_list();
        in_batches(first, last, [this](std::size_t block) { write_block(block); });
        pickle_.end_dict();
    }
    void write_block(std::size_t row) {
        const auto& blocks = snapshot_->blocks;
        pickle_.begin_dict();
        key(address_);
        pickle_.unsigned_integer(blocks.address[row]);
        key(size_);
        pickle_.integer(blocks.size[row]);
        key(requested_size_);
        pickle_.integer(blocks.requested_size[row]);
        key(state_);
        key(states_[blocks.state[row]]);
        key(frames_key_);
        stack(blocks.stack[row]);
        pickle_.end_dict();
    }

    template <std::size_t Count>
    static std::array<Constant, Count> constants(const std::array<std::string_view, Count>& texts) {
        std::array<Constant, Count> made{};
        for (std::size_t i = 0; i < Count; ++i) made[i].text = texts[i];
        return made;
    }

    const SnapshotToWrite* snapshot_;
    PickleWriter pickle_;
    std::vector<std::uint32_t> texts_;  // memo numbers of written texts
    std::vector<std::uint32_t> frames_;
    std::vector<std::uint32_t> stacks_;
    std::vector<std::uint32_t> pools_;
    std::array<Constant, record::action_names.size()> actions_ = constants(record::action_names);
    std::array<Constant, kind_names.size()> kinds_ = constants(kind_names);
    std::array<Constant, state_names.size()> states_ = constants(state_names);
    Constant empty_{""};
    Constant segments_key_{"segments"};
    Constant traces_key_{"device_traces"};
    Constant action_{"action"};
    Constant addr_{"addr"};
    Constant device_free_{"device_free"};
    Constant size_{"size"};
    Constant stream_{"stream"};
    Constant time_us_{"time_us"};
    Constant compile_context_{"compile_context"};
    Constant no_context_{"N/A"};
    Constant user_metadata_{"user_metadata"};
    Constant pool_id_{"pool_id"};
    Constant frames_key_{"frames"};
    Constant block_size_{"block_size"};
    Constant synthetic_{"synthetic"};
    Constant pool_is_large_{"pool_is_large"};
    Constant requested_size_{"requested_size"};
    Constant device_{"device"};
    Constant address_{"address"};
    Constant total_size_{"total_size"};
    Constant allocated_size_{"allocated_size"};
    Constant active_size_{"active_size"};
    Constant segment_type_{"segment_type"};
    Constant segment_pool_id_{"segment_pool_id"};
    Constant is_expandable_{"is_expandable"};
    Constant blocks_{"blocks"};
    Constant state_{"state"};
    Constant name_{"name"};
    Constant filename_{"filename"};
    Constant line_{"line"};
};

}  // namespace

void write_torch_snapshot(const SnapshotToWrite& snapshot, ByteSink sink) {
    Writer(snapshot, std::move(sink)).run();
}

}  // namespace gpuviz::formats
