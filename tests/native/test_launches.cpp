#include <string>
#include <vector>

#include "check.hpp"
#include "cupti/graph_launches.hpp"
#include "cupti/kernel_signature.hpp"
#include "record/block_touches.hpp"
#include "record/stream_table.hpp"

namespace {

using gpuviz::record::AccessMode;
using gpuviz::record::Action;
using gpuviz::record::ActivityLog;
using gpuviz::record::ActivityRow;
using gpuviz::record::BlockTouches;
using gpuviz::record::MemoryEvent;
using gpuviz::record::Stream;
using gpuviz::record::StreamTable;

std::string modes(const std::string& symbol, std::size_t parameters) {
    std::string letters;
    for (const auto& [first, later] : gpuviz::cupti::parameter_modes(symbol, parameters)) {
        letters += "?rw+"[int(first)];
        if (later != first) {
            letters += "?rw+"[int(later)];
        }
    }
    return letters;
}

void a_name_tells_what_is_read_and_written() {
    // scale(float const*, float*, int)
    CHECK_EQUAL(modes("_Z5scalePKfPfi", 3), "r??");
    // void k<float>(float const* __restrict__, std::pair<int, float const*>)
    CHECK_EQUAL(modes("_Z1kIfEvPKT_St4pairIiPKfE", 2), "r?");
    CHECK_EQUAL(modes("_Z5scalePKfPfi", 2), "??");  // another number of parameters
    CHECK_EQUAL(modes("cupy_add__float32_float32_float32", 4), "rrw?");
    CHECK_EQUAL(modes("cupy_divmod__float32_float32_float32_float32", 5), "rrww?");
    CHECK_EQUAL(modes("cupy_add__float32", 1), "?");
    CHECK_EQUAL(modes("spin", 2), "??");
    CHECK_EQUAL(modes("", 0), "");
}

void kernels_of_libraries_have_parameters_of_known_use() {
    // cub::detail::reduce::DeviceReduceKernel<int>(float*, float*, int), and one of another space.
    CHECK_EQUAL(modes("_ZN3cub6detail6reduce18DeviceReduceKernelIiEEvPfS3_i", 3), "rw?");
    CHECK_EQUAL(modes("_ZN4mine18DeviceReduceKernelIiEEvPfS1_i", 3), "???");
    CHECK_EQUAL(modes("_ZN3cub20MyDeviceReduceKernelEPfS0_i", 3), "???");
    CHECK_EQUAL(modes("_Z12execute_distIfEvllll", 4), "+ww?");
    // vector_fft<128u>(kernel_arguments_t): its first pointer is read, the second is written.
    CHECK_EQUAL(modes("_Z10vector_fftILj128EEv18kernel_arguments_t", 1), "rw");
}

void what_is_declared_counts_where_it_agrees() {
    using enum AccessMode;
    CHECK_EQUAL(modes("raw", 2), "??");
    gpuviz::cupti::declare_modes("raw", {read, write, write});
    CHECK_EQUAL(modes("raw", 2), "rw");
    CHECK_EQUAL(modes("raw", 4), "rww?");
    gpuviz::cupti::declare_modes("raw", {read, read_write});
    CHECK_EQUAL(modes("raw", 4), "r???");
    // scale(float const*, float*, int): the name is right in any case.
    gpuviz::cupti::declare_modes("_Z5scalePKfPfi", {write, write});
    CHECK_EQUAL(modes("_Z5scalePKfPfi", 3), "rw?");
}

void a_handle_means_the_stream_that_had_it_at_the_time() {
    StreamTable streams;
    const auto first = streams.by_handle(0, 0x70, 5);
    CHECK_EQUAL(streams.by_handle(0, 0x70, 9), first);
    Stream known{.id = 0, .device = 0, .handle = 0x70, .tracer_id = 13};
    CHECK_EQUAL(streams.describe(known), first);  // seen in allocator events before
    CHECK_EQUAL(streams.by_tracer_id(0, 13), first);
    streams.destroyed(0, 0x70, 20);
    CHECK_EQUAL(streams.by_handle(0, 0x70, 25), first);  // its memory is still in its pool
    Stream again{.id = 0, .device = 0, .handle = 0x70, .tracer_id = 14};
    again.created = 30;
    const auto second = streams.describe(again);
    CHECK_EQUAL(second != first, true);
    CHECK_EQUAL(streams.by_handle(0, 0x70, 15), first);
    CHECK_EQUAL(streams.by_handle(0, 0x70, 35), second);
    const auto numbered = streams.by_tracer_id(1, 7);
    Stream named{.id = 0, .device = 1, .handle = 0, .tracer_id = 7};
    CHECK_EQUAL(streams.describe(named), numbered);
    CHECK_EQUAL(streams.by_handle(1, 0, 1), numbered);
    CHECK_EQUAL(streams.take_changed().size(), 3u);
    CHECK_EQUAL(streams.take_changed().size(), 0u);
}

MemoryEvent event(Action action, std::int64_t time, std::uint64_t address, std::uint64_t size) {
    MemoryEvent made{};
    made.action = action;
    made.time_ns = time;
    made.address = address;
    made.size = size;
    return made;
}

void a_touch_finds_the_block_that_lived_at_its_time() {
    constexpr std::uint64_t base = std::uint64_t{1} << 40;
    ActivityLog log;
    BlockTouches touches;
    CHECK_EQUAL(touches.may_be_block(base), false);
    const std::vector<MemoryEvent> events{
        event(Action::segment_alloc, 1, base, 4096), event(Action::alloc, 2, base, 512),
        event(Action::free_completed, 10, base, 512), event(Action::alloc, 12, base, 1024)};
    for (const MemoryEvent& each : events) {
        touches.saw(each);
    }
    CHECK_EQUAL(touches.may_be_block(base + 600), true);
    const std::vector<BlockTouches::Touch> asked{{13, base + 600, 3, AccessMode::write},
                                                 {11, base, 2, AccessMode::read},
                                                 {5, base + 511, 1, AccessMode::read},
                                                 {5, base + 512, 4, AccessMode::read}};
    touches.add(asked);
    touches.begin();
    touches.collect(events);
    touches.resolve(log);
    CHECK_EQUAL(log.launch_blocks.rows(), 2u);  // of launches 1 and 3
    touches.add(std::vector<BlockTouches::Touch>{{99, base + 1000, 5, AccessMode::read}});
    touches.begin();
    touches.resolve(log);
    CHECK_EQUAL(log.launch_blocks.rows(), 3u);  // the block lives on between drains
}

void nodes_of_a_graph_launch_become_one_row() {
    ActivityLog log;
    gpuviz::cupti::GraphLaunches graphs(log);
    ActivityRow node{};
    node.stream = 1;
    node.graph = 2;
    for (const std::uint32_t correlation : {7u, 7u, 8u}) {
        node.correlation = correlation;
        node.time += 10;
        node.end = node.time + 4;
        graphs.add(node);
    }
    CHECK_EQUAL(log.activities.rows(), 1u);
    graphs.finish();
    graphs.finish();
    CHECK_EQUAL(log.activities.rows(), 2u);
    const auto chunks = log.activities.take(true);
    chunks.front().for_each_column([](const std::string& name, const auto* values) {
        if (name == "time") {
            CHECK_EQUAL(std::int64_t(values[0]), 10);
            CHECK_EQUAL(std::int64_t(values[1]), 30);
        } else if (name == "end") {
            CHECK_EQUAL(std::int64_t(values[0]), 24);
        }
    });
}

}  // namespace

int main() {
    a_name_tells_what_is_read_and_written();
    kernels_of_libraries_have_parameters_of_known_use();
    what_is_declared_counts_where_it_agrees();
    a_handle_means_the_stream_that_had_it_at_the_time();
    a_touch_finds_the_block_that_lived_at_its_time();
    nodes_of_a_graph_launch_become_one_row();
}
