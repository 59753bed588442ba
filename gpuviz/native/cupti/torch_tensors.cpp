#include "cupti/torch_tensors.hpp"

#include <cstring>

#include "record/mixing.hpp"

namespace gpuviz::cupti {

namespace {

constexpr std::size_t room_of_tensor = 25;  // MAX_TENSORINFO_DIMS of PyTorch
constexpr std::size_t address_bytes = 8;

constexpr std::size_t place_of_dimensions(std::size_t index_bytes) noexcept {
    return address_bytes + 2 * room_of_tensor * index_bytes;
}

constexpr std::size_t size_of_tensor(std::size_t index_bytes) noexcept {
    const std::size_t size = place_of_dimensions(index_bytes) + sizeof(std::int32_t);
    return (size + address_bytes - 1) / address_bytes * address_bytes;
}

// Six addresses, an index, two flags and the number of outputs.
constexpr std::size_t end_of_reduction = 6 * address_bytes + 8 + 2 + 2 + 4;

}  // namespace

std::uint32_t tensor_index_bytes(std::string_view symbol, std::size_t size) noexcept {
    // Within namespace `at`, a mangled name abbreviates it.
    if (symbol.find("4cuda6detail10TensorInfoI") == std::string_view::npos) {
        return 0;
    }
    return size == size_of_tensor(4) ? 4 : size == size_of_tensor(8) ? 8 : 0;
}

std::optional<std::uint64_t> with_tensor(std::uint64_t state, const std::byte* value,
                                         std::uint32_t index_bytes) noexcept {
    std::int32_t dimensions = 0;
    std::memcpy(&dimensions, value + place_of_dimensions(index_bytes), sizeof dimensions);
    if (dimensions < 0 || std::size_t(dimensions) > room_of_tensor) {
        return std::nullopt;
    }
    state = record::mixed(state, std::uint64_t(dimensions));
    for (std::size_t each = 0; each < 2 * std::size_t(dimensions); ++each) {
        // Sizes first, then strides, each with room for all dimensions.
        const std::size_t place =
            each < std::size_t(dimensions) ? each : room_of_tensor + each - std::size_t(dimensions);
        std::uint64_t number = 0;
        std::memcpy(&number, value + address_bytes + place * index_bytes, index_bytes);
        state = record::mixed(state, number);
    }
    return state;
}

std::size_t reduction_addresses(std::string_view symbol, std::size_t size) noexcept {
    if (symbol.find("2at6native13reduce_kernelI") == std::string_view::npos ||
        size % address_bytes != 0 || size <= end_of_reduction) {
        return 0;
    }
    return size - end_of_reduction;
}

}  // namespace gpuviz::cupti
