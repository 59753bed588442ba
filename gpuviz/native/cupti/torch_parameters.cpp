#include "cupti/torch_parameters.hpp"

#include <bit>
#include <cstring>

#include "record/mixing.hpp"

namespace gpuviz::cupti {

namespace {

using record::mixed;
using Structure = TorchParameter::Kind;

constexpr std::size_t room = 25;  // MAX_TENSORINFO_DIMS and MAX_DIMS of PyTorch
constexpr std::size_t address_bytes = 8;

constexpr std::size_t aligned(std::size_t size) noexcept {
    return (size + address_bytes - 1) / address_bytes * address_bytes;
}

template <typename Number>
Number number_at(const std::byte* value) noexcept {
    Number number{};
    std::memcpy(&number, value, sizeof number);
    return number;
}

bool contains(std::string_view symbol, std::string_view part) noexcept {
    return symbol.find(part) != std::string_view::npos;
}

// at::cuda::detail::TensorInfo: an address, sizes, strides, and the number of dimensions.
constexpr std::size_t place_of_dimensions(std::size_t index_bytes) noexcept {
    return address_bytes + 2 * room * index_bytes;
}

constexpr std::size_t size_of_tensor(std::size_t index_bytes) noexcept {
    return aligned(place_of_dimensions(index_bytes) + sizeof(std::int32_t));
}

std::optional<std::uint64_t> with_tensor(std::uint64_t state, const std::byte* value,
                                         std::size_t index_bytes) noexcept {
    const auto dimensions = number_at<std::uint32_t>(value + place_of_dimensions(index_bytes));
    if (dimensions > room) {
        return std::nullopt;
    }
    state = mixed(state, dimensions);
    for (std::size_t each = 0; each < 2 * dimensions; ++each) {
        // Sizes first, then strides, each with room for all dimensions.
        const std::size_t place = each < dimensions ? each : room + each - dimensions;
        std::uint64_t number = 0;
        std::memcpy(&number, value + address_bytes + place * index_bytes, index_bytes);
        state = mixed(state, number);
    }
    return state;
}

// OffsetCalculator: the number of dimensions, for each a size with what replaces the division by it
// (a factor and a shift), and strides for each tensor.
constexpr std::size_t divider_bytes = 12;
constexpr std::size_t place_of_strides = 4 + room * divider_bytes;

constexpr std::size_t size_of_calculator(std::size_t tensors) noexcept {
    return place_of_strides + room * tensors * 4;
}

std::optional<std::uint64_t> with_calculator(std::uint64_t state, const std::byte* value,
                                             std::size_t tensors) noexcept {
    const auto dimensions = number_at<std::uint32_t>(value);
    if (dimensions > room) {
        return std::nullopt;
    }
    state = mixed(state, dimensions);
    for (std::size_t each = 0; each < dimensions; ++each) {
        const std::byte* divider = value + 4 + each * divider_bytes;
        const auto size = number_at<std::uint32_t>(divider);
        if (size == 0 ||
            number_at<std::uint32_t>(divider + 8) != std::uint32_t(std::bit_width(size - 1))) {
            return std::nullopt;
        }
        state = mixed(state, size);
    }
    for (std::size_t each = 0; each < dimensions * tensors; ++each) {
        state = mixed(state, number_at<std::uint32_t>(value + place_of_strides + 4 * each));
    }
    return state;
}

std::uint64_t with_bytes(std::uint64_t state, const std::byte* value, std::size_t size) noexcept {
    for (std::size_t at = 0; at < size; at += 4) {
        state = mixed(state, number_at<std::uint32_t>(value + at));
    }
    return state;
}

// Functions of an element whose state is known. The structure ends with an address of the host, of
// the function object that nvcc keeps for an extended lambda.
struct ElementFunction {
    std::string_view part;  // of the mangled name
    std::uint8_t tensors;   // the output and the inputs
    std::uint8_t state_bytes;
};
constexpr ElementFunction element_functions[] = {
    {"15binary_internal10MulFunctorI", 3, 0}, {"15binary_internal10DivFunctorI", 3, 0},
    {"15CUDAFunctor_addIfE", 3, 4},           {"15CUDAFunctor_addIdE", 3, 8},
    {"15CUDAFunctor_addIiE", 3, 4},           {"15CUDAFunctor_addIlE", 3, 8},
    {"15CUDAFunctor_addIN3c104HalfEE", 3, 4}, {"15CUDAFunctor_addIN3c108BFloat16EE", 3, 4},
    {"23direct_copy_kernel_cuda", 2, 0},      {"17where_kernel_impl", 4, 0},
};

TorchParameter elements(std::string_view symbol, std::size_t size) noexcept {
    for (const ElementFunction& function : element_functions) {
        const bool is_binary = !contains(function.part, "binary_internal") ||
                               contains(symbol, "22gpu_kernel_impl_nocastINS0_13BinaryFunctorI");
        const std::size_t addresses = aligned(size_of_calculator(function.tensors));
        const std::size_t whole = addresses + function.tensors * address_bytes + 2 * address_bytes;
        if (contains(symbol, function.part) && is_binary && size == whole) {
            return {Structure::elements, 0, function.state_bytes, addresses, function.tensors};
        }
    }
    return {};
}

// ReduceOp: the function, the value to begin with, ReduceConfig, calculators of offsets for input
// and outputs, six addresses, an index, two flags and the number of outputs.
constexpr std::size_t address_count_of_reduction = 6;
constexpr std::size_t end_of_reduction = address_count_of_reduction * address_bytes + 8 + 2 + 2 + 4;
constexpr std::size_t flag_of_config = 56;
constexpr std::size_t size_of_config = 64;
constexpr std::size_t before_addresses =
    aligned(size_of_config + size_of_calculator(1) + size_of_calculator(2));

TorchParameter reduction(std::string_view symbol, std::size_t size) noexcept {
    constexpr std::size_t most_of_function = 32;
    constexpr std::size_t least = before_addresses + end_of_reduction;
    if (size % address_bytes != 0 || size < least || size > least + most_of_function) {
        return {};
    }
    // Of all others, what the function has may be set.
    bool has_state = true;
    for (const std::string_view part : {"14func_wrapper_tI", "6MaxOpsI", "6MinOpsI"}) {
        has_state = has_state && !contains(symbol, part);
    }
    const std::size_t addresses = size - end_of_reduction;
    const std::size_t state_bytes = has_state ? addresses - before_addresses : 0;
    return {Structure::reduction, 0, std::uint8_t(state_bytes), addresses,
            address_count_of_reduction};
}

std::optional<std::uint64_t> with_reduction(std::uint64_t state, const std::byte* value,
                                            const TorchParameter& parameter) noexcept {
    const std::byte* config = value + parameter.addresses - before_addresses;
    state = with_bytes(state, value, parameter.state_bytes);
    state = with_bytes(state, config, flag_of_config);
    state = mixed(state, number_at<std::uint8_t>(config + flag_of_config));
    state = with_bytes(state, config + flag_of_config + 4, 4);
    const std::byte* calculator = config + size_of_config;
    const auto input = with_calculator(state, calculator, 1);
    const auto outputs =
        input ? with_calculator(*input, calculator + size_of_calculator(1), 2) : std::nullopt;
    if (!outputs) {
        return std::nullopt;
    }
    const std::byte* end = value + parameter.addresses + address_count_of_reduction * address_bytes;
    state = with_bytes(*outputs, end, 8);
    state = mixed(state, number_at<std::uint16_t>(end + 8));
    return with_bytes(state, end + 12, 4);
}

}  // namespace

TorchParameter torch_parameter(std::string_view symbol, std::size_t size) noexcept {
    // Within namespace `at`, a mangled name abbreviates it.
    if (contains(symbol, "4cuda6detail10TensorInfoI")) {
        for (const std::uint8_t index_bytes : {std::uint8_t{4}, std::uint8_t{8}}) {
            if (size == size_of_tensor(index_bytes)) {
                return {Structure::tensor, index_bytes, 0, 0, 1};
            }
        }
    }
    if (contains(symbol, "2at6native18elementwise_kernelI") &&
        contains(symbol, "22gpu_kernel_impl_nocastI")) {
        return elements(symbol, size);
    }
    if (contains(symbol, "2at6native13reduce_kernelI")) {
        return reduction(symbol, size);
    }
    return {};
}

std::optional<std::uint64_t> with_numbers_of(std::uint64_t state, const std::byte* value,
                                             const TorchParameter& parameter) noexcept {
    switch (parameter.kind) {
        case Structure::none:
            return std::nullopt;
        case Structure::tensor:
            return with_tensor(state, value, parameter.index_bytes);
        case Structure::elements: {
            const std::byte* function =
                value + parameter.addresses + parameter.address_count * address_bytes;
            return with_calculator(with_bytes(state, function, parameter.state_bytes), value,
                                   parameter.address_count);
        }
        case Structure::reduction:
            return with_reduction(state, value, parameter);
    }
    return std::nullopt;
}

}  // namespace gpuviz::cupti
