#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "check.hpp"
#include "cupti/array_extents.hpp"
#include "cupti/graph_launches.hpp"
#include "cupti/kernel_signature.hpp"
#include "cupti/torch_parameters.hpp"
#include "record/block_touches.hpp"
#include "record/host_content.hpp"
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
    for (const auto& [first, later, is_array] :
         gpuviz::cupti::parameter_modes(symbol, parameters)) {
        letters += is_array ? "[" : "";
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

void kernels_of_torch_write_what_is_not_const() {
    CHECK_EQUAL(modes("_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEE"
                      "St5arrayIPcLm3EEEEviT0_T1_",
                      3),
                "??[wr");
    // at::native::k<float>(float*, float const*, int, float**)
    CHECK_EQUAL(modes("_ZN2at6native1kIfEEvPT_PKS2_iPS3_", 4), "+r??");
    CHECK_EQUAL(modes("_ZN2at6native1kIfEEvPT_S3_i", 3), "???");  // none is const
    CHECK_EQUAL(modes("_ZN4mine1kIfEEvPT_PKS1_i", 3), "?r?");
    // at::native::k<float>(TensorInfo<float const, unsigned>, TensorInfo<float, unsigned>, int)
    CHECK_EQUAL(modes("_ZN2at6native1kIfEEvNS_4cuda6detail10TensorInfoIKT_jEENS4_IS5_jEEi", 3),
                "r+?");
}

using Elements = std::vector<std::uint32_t>;

Elements elements(const std::string& symbol, const std::vector<std::size_t>& sizes,
                  std::uint64_t function = 1) {
    return gpuviz::cupti::array_elements(function, symbol, sizes);
}

void ufuncs_access_all_elements_of_their_arrays() {
    const std::string add = "cupy_add__float32_float_float64";
    CHECK_EQUAL(elements(add, {32, 8, 48, 32}) == Elements({4, 0, 8, 0}), true);
    CHECK_EQUAL(elements(add, {16, 8, 20, 32}) == Elements({4, 0, 0, 0}), true);  // no array
    CHECK_EQUAL(elements(add, {32, 8, 48}) == Elements({0, 0, 0}), true);
    CHECK_EQUAL(elements("cupy_add_where__float32_bool_float32", {32, 32, 32, 32}) ==
                    Elements({0, 0, 0, 0}),
                true);
    CHECK_EQUAL(elements("cupy_not__bool_bool", {1, 32, 32}) == Elements({0, 1, 0}), true);
    CHECK_EQUAL(elements("cupy_copy__thing_complex128", {32, 32, 32}) == Elements({0, 16, 0}),
                true);
    CHECK_EQUAL(elements("cupy_sum", {32, 32}) == Elements({0, 0}), true);
}

void of_an_indexer_only_the_shape_is_set() {
    using gpuviz::cupti::size_set_by_cupy;
    CHECK_EQUAL(size_set_by_cupy(8), 8u);    // no dimension
    CHECK_EQUAL(size_set_by_cupy(24), 16u);  // one
    CHECK_EQUAL(size_set_by_cupy(40), 24u);  // two
    CHECK_EQUAL(size_set_by_cupy(32), 32u);  // an array
    CHECK_EQUAL(size_set_by_cupy(20), 20u);
}

void elements_are_declared_for_one_function_of_a_name() {
    gpuviz::cupti::declare_array_elements(7, "fill", {0, 8});
    CHECK_EQUAL(elements("fill", {8, 32, 32}, 7) == Elements({0, 8, 0}), true);
    CHECK_EQUAL(elements("fill", {8, 32, 32}, 8) == Elements({0, 0, 0}), true);
    CHECK_EQUAL(elements("other", {8, 32, 32}, 7) == Elements({0, 0, 0}), true);
    gpuviz::cupti::declare_array_elements(7, "fill", {0, 4});
    CHECK_EQUAL(elements("fill", {8, 32, 32}, 7) == Elements({0, 4, 0}), true);
}

void check_span(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
                std::int64_t start, std::uint64_t bytes, std::uint32_t stride = 0) {
    std::vector<std::int64_t> array{0x1000, 1};
    array.insert(array.end(), shape.begin(), shape.end());
    array.insert(array.end(), strides.begin(), strides.end());
    const auto found = gpuviz::cupti::span_of_array(
        reinterpret_cast<const std::byte*>(array.data()), array.size() * 8, 4);
    CHECK_EQUAL(found.start, std::uint64_t(0x1000 + start));
    CHECK_EQUAL(found.bytes, bytes);
    CHECK_EQUAL(found.stride, stride);
}

void the_span_of_an_array_is_known_if_it_has_no_gaps() {
    check_span({}, {}, 0, 4);
    check_span({10}, {4}, 0, 40);
    check_span({10}, {-4}, -36, 40);
    check_span({10}, {8}, 0, 0, 8);  // every second element
    check_span({10}, {-8}, -72, 0, 8);
    check_span({3, 5}, {60, 12}, 0, 0, 12);  // one of three fields
    check_span({5, 3}, {12, 60}, 0, 0, 12);
    check_span({3, 1}, {60, 12}, 0, 0, 60);  // a column
    check_span({2}, {std::int64_t{1} << 40}, 0, 0);
    check_span({1}, {800}, 0, 4);
    check_span({10, 3}, {0, 4}, 0, 12);  // broadcast
    check_span({3, 5}, {20, 4}, 0, 60);
    check_span({5, 3}, {4, 20}, 0, 60);  // transposed
    check_span({3, 5}, {-20, 4}, -40, 60);
    check_span({3, 5}, {24, 4}, 0, 0);  // columns of a wider array
    check_span({3, 2}, {4, 4}, 0, 16);  // windows that overlap
    check_span({2, 3, 4}, {12, 4, 24}, 0, 96);
    check_span({0}, {4}, 0, 0);
    check_span({2, 2, 2, 2, 2, 2, 2, 2, 2}, {1024, 512, 256, 128, 64, 32, 16, 8, 4}, 0, 0);
}

std::optional<std::uint64_t> content_of(const std::string& symbol, const void* value,
                                        std::size_t size) {
    const auto parameter = gpuviz::cupti::torch_parameter(symbol, size);
    return gpuviz::cupti::with_numbers_of(1, static_cast<const std::byte*>(value), parameter);
}

std::size_t addresses_of(const std::string& symbol, std::size_t size) {
    return gpuviz::cupti::torch_parameter(symbol, size).addresses;
}

void of_a_tensor_of_torch_only_its_dimensions_are_set() {
    const std::string symbol =
        "_ZN2at6native6mbtopk10gatherTopKIfjLi2EEEvNS_4cuda6detail10TensorInfoIKT_T0_EES6_";
    struct Tensor {
        std::uint64_t address;
        std::uint32_t sizes[25];
        std::uint32_t strides[25];
        std::int32_t dimensions;
    };
    const auto content = [&](const Tensor& tensor) {
        return content_of(symbol, &tensor, sizeof tensor);
    };
    const Tensor tensor{0x1000, {5, 6}, {6, 1}, 2};
    Tensor other = tensor;
    other.address = 0x2000;
    other.sizes[2] = other.strides[24] = 7;
    CHECK_EQUAL(content(tensor).has_value(), true);
    CHECK_EQUAL(content(tensor) == content(other), true);
    other.strides[1] = 2;
    CHECK_EQUAL(content(tensor) == content(other), false);
    other = tensor;
    other.dimensions = 1;
    CHECK_EQUAL(content(tensor) == content(other), false);
    other.dimensions = 26;  // another structure
    CHECK_EQUAL(content(other).has_value(), false);
    CHECK_EQUAL(content_of(symbol, &tensor, sizeof tensor + 8).has_value(), false);
    CHECK_EQUAL(content_of("_Z4sortPf", &tensor, sizeof tensor).has_value(), false);
}

struct Divider {
    std::uint32_t size, factor, shift;
};

template <std::size_t tensors>
struct Calculator {
    std::uint32_t dimensions;
    Divider sizes[25];
    std::uint32_t strides[25][tensors];
};

// What a launch of `x.t() + y` for 256 x 256 elements receives, as seen on an H200.
struct Sum {
    Calculator<3> offsets;
    std::uint64_t addresses[3];
    float factor;
    std::uint32_t padding;
    std::uint64_t of_host;
};
constexpr Sum sum_of_transposed{
    {2, {{256, 1, 8}, {256, 1, 8}}, {{4, 4, 1024}, {1024, 1024, 4}}}, {1, 2, 3}, 1, 0, 0};
const std::string add_strided =
    "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastINS0_15CUDAFunctor_"
    "addIfEEEEvRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_";

void of_strided_elements_of_torch_only_their_dimensions_are_set() {
    const auto content = [](const Sum& sum) { return content_of(add_strided, &sum, sizeof sum); };
    CHECK_EQUAL(sizeof(Sum), 648u);
    CHECK_EQUAL(addresses_of(add_strided, sizeof(Sum)), 608u);
    Sum other = sum_of_transposed;
    other.offsets.sizes[2] = {7, 7, 7};
    other.offsets.strides[2][0] = other.offsets.strides[24][2] = 7;
    other.addresses[1] = other.of_host = 7;
    other.padding = 7;
    CHECK_EQUAL(content(sum_of_transposed).has_value(), true);
    CHECK_EQUAL(content(other) == content(sum_of_transposed), true);
    other.offsets.strides[1][2] = 8;
    CHECK_EQUAL(content(other) == content(sum_of_transposed), false);
    other = sum_of_transposed;
    other.factor = 2;
    CHECK_EQUAL(content(other) == content(sum_of_transposed), false);
    other = sum_of_transposed;
    other.offsets.sizes[1] = {255, 0x01010102, 8};
    CHECK_EQUAL(content(other) == content(sum_of_transposed), false);
    other.offsets.sizes[1].shift = 7;  // no calculator of offsets
    CHECK_EQUAL(content(other).has_value(), false);
}

void of_an_unknown_function_of_elements_everything_may_be_set() {
    const auto kernel = [](const std::string& function) {
        return "_ZN2at6native18elementwise_kernelILi128ELi2EZNS0_22gpu_kernel_impl_nocastI" +
               function + "EEvRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_";
    };
    const std::string product = "NS0_15binary_internal10MulFunctorIfEE";
    const std::string lerp = "ZZZNS0_45_GLOBAL__N__d296b789_7_Lerp_cu_751192d7_2018418lerp_scalar";
    CHECK_EQUAL(addresses_of(kernel("NS0_13BinaryFunctorIfff" + product), 648), 608u);
    CHECK_EQUAL(addresses_of(kernel("NS0_13AUnaryFunctorIfff" + product), 648), 0u);
    CHECK_EQUAL(addresses_of(kernel(lerp), 656), 0u);
    CHECK_EQUAL(addresses_of(add_strided, 656), 0u);
}

// What a launch of `x.t().sum(0)` for 256 x 256 elements receives.
struct Reduction {
    std::uint32_t function;
    float first;
    std::uint32_t config[14];
    std::uint32_t flag;
    std::uint32_t values;
    Calculator<1> input;
    Calculator<2> outputs;
    std::uint64_t addresses[6];
    std::int64_t index;
    std::uint8_t flags[4];
    std::uint32_t outputs_count;
};

void of_a_reduction_of_torch_only_its_dimensions_are_set() {
    const std::string sum =
        "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfZNS0_11sum_"
        "functorIfffEclERNS_14TensorIteratorEEUlffE_EEjfLi4ELi4EEEEEvT1_";
    const std::string mean =
        "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_7MeanOpsIffffEEjfLi4ELi4EEEEEvT1"
        "_";
    const auto content = [](const std::string& symbol, const Reduction& reduction) {
        return content_of(symbol, &reduction, sizeof reduction);
    };
    CHECK_EQUAL(sizeof(Reduction), 1048u);
    CHECK_EQUAL(addresses_of(sum, 1048), 984u);
    CHECK_EQUAL(addresses_of(sum, 1064), 1000u);
    CHECK_EQUAL(addresses_of(sum, 64), 0u);
    CHECK_EQUAL(addresses_of("_Z13reduce_kernelPf", 1048), 0u);
    Reduction reduction{};
    reduction.config[1] = 256;
    reduction.flag = 1;
    reduction.input.dimensions = reduction.outputs.dimensions = 1;
    reduction.input.sizes[0] = reduction.outputs.sizes[0] = {256, 1, 8};
    Reduction other = reduction;
    other.flag |= 0xfb336c00;
    other.input.sizes[1].size = other.outputs.strides[1][0] = 7;
    other.addresses[0] = 7;
    other.flags[2] = 7;
    CHECK_EQUAL(content(sum, reduction).has_value(), true);
    CHECK_EQUAL(content(sum, other) == content(sum, reduction), true);
    other.function = 7;  // nothing of a sum; of a mean, what it is multiplied by
    CHECK_EQUAL(content(sum, other) == content(sum, reduction), true);
    CHECK_EQUAL(content(mean, other) == content(mean, reduction), false);
    other = reduction;
    other.flags[1] = 1;
    CHECK_EQUAL(content(sum, other) == content(sum, reduction), false);
    other = reduction;
    other.outputs.strides[0][1] = 4;
    CHECK_EQUAL(content(sum, other) == content(sum, reduction), false);
    other.outputs.dimensions = 26;  // another structure
    CHECK_EQUAL(content(sum, other).has_value(), false);
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
    const std::vector<Stream> all = streams.all();
    CHECK_EQUAL(all.back().handle == Stream::no_handle, true);
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
    touches.add(std::vector<BlockTouches::Touch>{{99, base + 1000, 5, AccessMode::read, 24},
                                                 {99, base + 1000, 6, AccessMode::read, 25}});
    touches.begin();
    touches.resolve(log);
    CHECK_EQUAL(log.launch_blocks.rows(), 4u);  // the block lives on between drains
    const auto chunks = log.launch_blocks.take(true);
    chunks.front().for_each_column([](const std::string& name, const auto* values) {
        if (name == "bytes") {
            CHECK_EQUAL(std::uint64_t(values[2]), 24u);
            CHECK_EQUAL(std::uint64_t(values[3]), 0u);  // not all of it is in the block
        }
    });
}

void a_block_is_known_in_whole_where_a_smaller_one_was_before() {
    constexpr std::uint64_t base = std::uint64_t{1} << 40;
    constexpr std::uint64_t mib = 1 << 20;
    BlockTouches touches;
    touches.saw(event(Action::alloc, 1, base + 512, 2 * mib));
    touches.saw(event(Action::free_completed, 2, base + 512, 2 * mib));
    touches.saw(event(Action::alloc, 3, base + 2 * mib, 512 * mib));
    CHECK_EQUAL(touches.may_be_block(base), true);
    CHECK_EQUAL(touches.may_be_block(base + 100 * mib), true);
    CHECK_EQUAL(touches.may_be_block(base + 514 * mib - 1), true);
    CHECK_EQUAL(touches.may_be_block(base + 514 * mib), false);
    CHECK_EQUAL(touches.may_be_block(base - 1), false);
}

void the_content_of_a_source_is_compared_where_it_can_be_read() {
    using gpuviz::record::least_content;
    using gpuviz::record::sampled_content;
    const auto content = [](const std::vector<char>& source) {
        return sampled_content(reinterpret_cast<std::uint64_t>(source.data()), source.size());
    };
    std::vector<char> one(3 * least_content, 'a');
    std::vector<char> other(one);
    CHECK_EQUAL(content(one) != 0, true);
    CHECK_EQUAL(content(one), content(other));
    other.back() = 'b';
    CHECK_EQUAL(content(one) == content(other), false);
    other.assign(one.size() + 1, 'a');
    CHECK_EQUAL(content(one) == content(other), false);
    CHECK_EQUAL(content(std::vector<char>(least_content - 1)), 0u);
    // What no page is mapped to.
    CHECK_EQUAL(sampled_content(4096, least_content), 0u);
    CHECK_EQUAL(sampled_content(~std::uint64_t{0}, ~std::uint64_t{0}), 0u);
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
    kernels_of_torch_write_what_is_not_const();
    of_an_indexer_only_the_shape_is_set();
    ufuncs_access_all_elements_of_their_arrays();
    elements_are_declared_for_one_function_of_a_name();
    the_span_of_an_array_is_known_if_it_has_no_gaps();
    of_a_tensor_of_torch_only_its_dimensions_are_set();
    of_strided_elements_of_torch_only_their_dimensions_are_set();
    of_an_unknown_function_of_elements_everything_may_be_set();
    of_a_reduction_of_torch_only_its_dimensions_are_set();
    what_is_declared_counts_where_it_agrees();
    a_handle_means_the_stream_that_had_it_at_the_time();
    a_touch_finds_the_block_that_lived_at_its_time();
    a_block_is_known_in_whole_where_a_smaller_one_was_before();
    the_content_of_a_source_is_compared_where_it_can_be_read();
    nodes_of_a_graph_launch_become_one_row();
}
