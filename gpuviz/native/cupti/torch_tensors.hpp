#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gpuviz::cupti {

// PyTorch's at::cuda::detail::TensorInfo: an address, 25 sizes, 25 strides and the number of
// dimensions. Only as many sizes and strides are set; behind them is what an earlier call left,
// which can be addresses.
//
// Returns the bytes of a size if a kernel may have a parameter of so many bytes of that type, going
// by its mangled name; else 0.
[[nodiscard]] std::uint32_t tensor_index_bytes(std::string_view symbol, std::size_t size) noexcept;

// The state of a hash after what is set in a TensorInfo besides its address. Nothing if the number
// of dimensions is none, so that it is another structure.
[[nodiscard]] std::optional<std::uint64_t> with_tensor(std::uint64_t state, const std::byte* value,
                                                       std::uint32_t index_bytes) noexcept;

// PyTorch's at::native::ReduceOp ends with addresses: input, two outputs and three buffers. Before
// them are the sizes and strides of two iterators, with room for 25 dimensions as above.
//
// Returns the place of the first address if a parameter of so many bytes is one, going by the
// kernel's mangled name; else 0.
[[nodiscard]] std::size_t reduction_addresses(std::string_view symbol, std::size_t size) noexcept;

}  // namespace gpuviz::cupti
