#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuviz::cupti {

// A structure that PyTorch's kernels receive, with room for 25 dimensions. Only as many as a tensor
// has are set; behind them is what an earlier call left, which can be addresses.
struct TorchParameter {
    enum class Kind : std::uint8_t {
        none,       // another parameter
        tensor,     // at::cuda::detail::TensorInfo
        elements,   // the function object of at::native::gpu_kernel_impl_nocast for strided tensors
        reduction,  // at::native::ReduceOp
    };
    Kind kind = Kind::none;
    std::uint8_t index_bytes = 0;  // of a tensor's sizes and strides
    std::uint8_t state_bytes = 0;  // that are set in the function of an element, or of a reduction
    std::size_t addresses = 0;     // the place of the first address
    std::size_t address_count = 0;
};

// The structure that a parameter of so many bytes is, going by the kernel's mangled name. A
// function of elements with an unknown state is none of them.
[[nodiscard]] TorchParameter torch_parameter(std::string_view symbol, std::size_t size) noexcept;

// The state of a hash after what is set in a structure besides its addresses. Nothing if its
// numbers of dimensions are none, so that it is another structure.
[[nodiscard]] std::optional<std::uint64_t> with_numbers_of(
    std::uint64_t state, const std::byte* value, const TorchParameter& parameter) noexcept;

}  // namespace gpuviz::cupti
