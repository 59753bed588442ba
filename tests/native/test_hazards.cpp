// Random operations on the engine: no access out of bounds, no report of ordered work, and memory
// that does not grow with the number of operations.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "hazards/engine.hpp"
#include "hazards/recorded_operations.hpp"

namespace {

using namespace gpuviz::hazards;

constexpr std::uint64_t pool_bytes = 4096;

class Program {
  public:
    Program(std::uint64_t seed, bool strict_threads)
        : random_(seed), engine_({.strict_threads = strict_threads}) {
        streams_ = {Order::legacy, second_};
        for (int each = 0; each < 3; ++each) events_.push_back(engine_.create_event());
    }

    void step() {
        const Slot stream = streams_[below(streams_.size())];
        const auto thread = static_cast<ThreadId>(below(3));
        const EventId event = events_[below(events_.size())];
        switch (below(20)) {
            case 0:
                return create_stream();
            case 1:
                return destroy_stream();
            case 2:
                return engine_.record_event(thread, event, stream);
            case 3:
                return engine_.wait_event(thread, stream, event);
            case 4:
                return engine_.synchronize_event(thread, event);
            case 5:
                return engine_.synchronize_stream(thread, stream);
            case 6:
                return below(8) == 0 ? synchronize(thread) : void();
            case 7:
                return capture(stream);
            case 8:
                return launch_graph(thread, stream);
            case 9:
                return engine_.write_value(thread, stream, below(2));
            case 10:
                return engine_.wait_value(thread, stream, below(2));
            case 11:
                return allocate(thread, stream);
            case 12:
                return allocate(thread, stream);
            case 13:
                return free(thread, stream);
            case 14:
                return copy(thread, stream);
            case 15:
                return engine_.host_access(++operation_, thread, accesses());
            default:
                return engine_.launch(++operation_, thread, stream, accesses(), below(8) == 0);
        }
    }

    std::size_t check() {
        const std::vector<Hazard> hazards = engine_.take();
        for (const Hazard& each : hazards) {
            CHECK_EQUAL(each.bytes.empty(), false);
            CHECK_EQUAL(each.first < each.second || each.kind == Kind::reuse, true);
            std::uint64_t last = 0;
            for (const auto& [start, stop] : each.bytes) {
                CHECK_EQUAL(start < stop && stop <= pool_bytes, true);
                CHECK_EQUAL(start >= last, true);
                last = stop;
            }
        }
        return hazards.size();
    }

  private:
    std::uint64_t below(std::uint64_t bound) { return random_() % bound; }
    Device any_device() { return static_cast<Device>(below(3)); }

    void create_stream() {
        if (streams_.size() > 6) return;
        const auto kind = below(2) == 0 ? StreamKind::blocking : StreamKind::non_blocking;
        streams_.push_back(engine_.create_stream(kind, any_device()));
    }

    void synchronize(ThreadId thread) {
        if (below(2) == 0) return engine_.synchronize_all(thread);
        engine_.synchronize_device(thread, any_device());
    }

    void destroy_stream() {
        if (streams_.size() < 4) return;
        const std::size_t place = 2 + below(streams_.size() - 2);
        if (streams_[place] == captured_) return;
        engine_.destroy_stream(streams_[place]);
        streams_.erase(streams_.begin() + std::ptrdiff_t(place));
    }

    void capture(Slot stream) {
        if (captured_ != Order::legacy) {
            graphs_.push_back(engine_.end_capture(captured_));
            captured_ = Order::legacy;
            return;
        }
        if (stream == Order::legacy || stream == second_ || graphs_.size() > 4) return;
        try {
            engine_.begin_capture(stream);
            captured_ = stream;
        } catch (const std::invalid_argument&) {
            return;  // the stream joined a capture
        }
    }

    void launch_graph(ThreadId thread, Slot stream) {
        if (graphs_.empty()) return;
        engine_.launch_graph(++operation_, thread, graphs_[below(graphs_.size())], stream);
    }

    void allocate(ThreadId thread, Slot stream) {
        const std::uint64_t start = below(pool_bytes / 64) * 64;
        const std::uint64_t bytes = 64 * (1 + below(8));
        constexpr Allocator allocators[] = {Allocator::cuda, Allocator::caching,
                                            Allocator::private_pool, Allocator::stream_ordered};
        const Memory memory = below(4) == 0 ? Memory::pinned : Memory::device;
        try {
            blocks_.push_back({engine_.allocate({++operation_, allocators[below(4)], memory,
                                                 pool_bytes + start, bytes, stream, thread}),
                               bytes});
        } catch (const std::invalid_argument&) {
            return;  // the memory is in use
        }
    }

    void free(ThreadId thread, Slot stream) {
        if (blocks_.empty()) return;
        const std::size_t place = below(blocks_.size());
        const BlockId block = blocks_[place].id;
        if (below(2) == 0) engine_.record_stream(block, stream);
        switch (below(3)) {
            case 0:
                engine_.free(++operation_, thread, block);
                break;
            case 1:
                engine_.free_async(++operation_, thread, block, stream);
                break;
            default:
                engine_.cuda_free(thread, block);
        }
        engine_.release(block);
        blocks_.erase(blocks_.begin() + std::ptrdiff_t(place));
    }

    Access access() {
        const Known& block = blocks_[below(blocks_.size())];
        const std::uint64_t start = below(block.bytes);
        return {.block = block.id,
                .mode = static_cast<Mode>(below(4)),
                .is_exact = below(4) > 0,
                .start = start,
                .stop = start + below(block.bytes - start + 1)};
    }

    std::vector<Access> accesses() {
        std::vector<Access> made;
        if (blocks_.empty()) return made;
        for (std::uint64_t each = below(20); each > 0; each /= 2) made.push_back(access());
        return made;
    }

    void copy(ThreadId thread, Slot stream) {
        if (blocks_.empty()) return;
        const bool is_synchronous = below(2) == 0;
        const Copy kind{static_cast<CopyKind>(below(4)), is_synchronous, below(2) == 0};
        engine_.copy(++operation_, thread, stream, kind, accesses());
        engine_.memset(++operation_, thread, stream, is_synchronous, accesses());
    }

    struct Known {
        BlockId id;
        std::uint64_t bytes;
    };

    std::mt19937_64 random_;
    Engine engine_;
    const Slot second_ = engine_.legacy_stream(1);
    OperationId operation_ = 0;
    std::vector<Slot> streams_;
    std::vector<EventId> events_;
    std::vector<Known> blocks_;
    std::vector<GraphId> graphs_;
    Slot captured_ = Order::legacy;
};

void random_programs_end_well() {
    std::size_t found = 0;
    for (std::uint64_t seed = 0; seed < 200; ++seed) {
        Program program(seed, seed % 2 == 0);
        for (int step = 0; step < 400; ++step) program.step();
        found += program.check();
    }
    CHECK_EQUAL(found > 1000, true);
}

void streams_and_blocks_are_reused_once_the_host_knows_their_end() {
    Engine engine;
    Slot highest = 0;
    for (OperationId operation = 1; operation <= 20'000; operation += 3) {
        const Slot stream = engine.create_stream(StreamKind::blocking);
        highest = std::max(highest, stream);
        const BlockId block = engine.allocate({.operation = operation,
                                               .allocator = Allocator::caching,
                                               .address = 64 * operation,
                                               .bytes = 64,
                                               .stream = stream});
        CHECK_EQUAL((block & 0xffffffff) < 4, true);
        const Access write{.block = block, .mode = Mode::write, .start = 0, .stop = 64};
        engine.launch(operation + 1, 0, stream, {&write, 1});
        engine.synchronize_stream(0, stream);
        engine.free(operation + 2, 0, block);
        engine.release(block);
        engine.destroy_stream(stream);
    }
    CHECK_EQUAL(highest < 4, true);
    CHECK_EQUAL(engine.take().size(), 0U);
}

// Numbers below a bound; in one of a few columns, some are not.
template <typename Value>
std::vector<Value> any(std::mt19937_64& random, std::size_t count, std::uint64_t bound) {
    std::vector<Value> values;
    const bool is_wild = random() % 32 == 0;
    for (std::size_t each = 0; each < count; ++each) {
        const bool is_any = is_wild && random() % 8 == 0;
        values.push_back(static_cast<Value>(is_any ? random() : random() % bound));
    }
    return values;
}

void recordings_of_any_content_are_judged_or_rejected(int rounds) {
    std::mt19937_64 random(7);
    std::size_t judged = 0;
    for (int round = 0; round < rounds; ++round) {
        constexpr std::size_t rows = 40, touches = 80, count = 6;
        auto code = any<std::uint8_t>(random, rows, 14);
        if (round % 4 > 0) {
            std::replace(code.begin(), code.end(), std::uint8_t(Code::destroy_stream),
                         std::uint8_t(Code::allocate));
        }
        std::fill_n(code.begin(), 2, std::uint8_t(Code::create_stream));
        auto stream = any<std::uint32_t>(random, rows, 3);
        stream[0] = 1;
        stream[1] = 2;
        const auto device = any<std::uint16_t>(random, rows, 2);
        const auto object = any<std::uint32_t>(random, rows, count);
        const auto accesses = any<std::uint32_t>(random, rows, 3);
        const auto block = any<std::uint32_t>(random, touches, count);
        const auto mode = any<std::uint8_t>(random, touches, 4);
        const auto start = any<std::uint64_t>(random, touches, 64);
        const auto stop = any<std::uint64_t>(random, touches, 96);
        const auto is_exact = any<std::uint8_t>(random, touches, 2);
        const auto address = any<std::uint64_t>(random, count, 128);
        const auto bytes = any<std::uint64_t>(random, count, 96);
        const auto is_pinned = any<std::uint8_t>(random, count, 2);
        const auto is_host_written = any<std::uint8_t>(random, count, 2);
        const auto is_private = any<std::uint8_t>(random, count, 2);
        try {
            const RecordedHazards found = hazards_of(
                {code, stream, device, object, accesses}, {block, mode, start, stop, is_exact},
                {address, bytes, is_pinned, is_host_written, is_private});
            for (const std::int64_t each : found.block) {
                CHECK_EQUAL(each >= 0 && each < std::int64_t(count), true);
            }
            ++judged;
        } catch (const std::invalid_argument&) {
            continue;
        }
    }
    CHECK_EQUAL(judged > 100, true);
}

}  // namespace

int main(int argc, char** argv) {
    random_programs_end_well();
    recordings_of_any_content_are_judged_or_rejected(400 * effort(argc, argv));
    streams_and_blocks_are_reused_once_the_host_knows_their_end();
}
