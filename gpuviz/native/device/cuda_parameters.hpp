#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace gpuviz::device {

// Where the parameters of a kernel are, in bytes from the first.
struct ParameterPlace {
    std::size_t offset;
    std::size_t size;
};
using ParameterPlaces = std::vector<ParameterPlace>;

// The driver's description of kernels: cuFuncGetParamInfo, or cuKernelGetParamInfo if the handle is
// a kernel's; CUDA 12.4. Thread-safe.
class CudaParameters {
  public:
    // Opens the driver, which is already loaded.
    CudaParameters();

    // Whether the driver has the functions.
    [[nodiscard]] bool is_supported() const noexcept { return function_info_ != nullptr; }
    // Nothing if the driver does not tell. `kernel` is a CUfunction or a CUkernel.
    [[nodiscard]] std::optional<ParameterPlaces> of(void* kernel) const;

  private:
    using Info = CUresult (*)(void* kernel, std::size_t index, std::size_t* offset,
                              std::size_t* size);
    Info function_info_ = nullptr;
    Info kernel_info_ = nullptr;
};

// The values of a launch, given by one of `parameters` and `extra` of cuLaunchKernel, the other of
// which is null.
class ParameterValues {
  public:
    ParameterValues(void* const* parameters, void* const* extra) noexcept;

    [[nodiscard]] bool exist() const noexcept {
        return parameters_ != nullptr || packed_ != nullptr;
    }
    [[nodiscard]] const std::byte* at(std::size_t index,
                                      const ParameterPlace& place) const noexcept {
        return parameters_ != nullptr ? static_cast<const std::byte*>(parameters_[index])
                                      : packed_ + place.offset;
    }

  private:
    void* const* parameters_;
    const std::byte* packed_ = nullptr;
};

[[nodiscard]] inline std::size_t first_word(const ParameterPlace& place) noexcept {
    return (8 - place.offset % 8) % 8;
}
// Calls `visit` with each aligned word of a parameter, so also with pointers inside structures.
template <typename Visit>
void for_each_word(const ParameterPlace& place, const std::byte* value, Visit&& visit) {
    for (std::size_t at = first_word(place); at + 8 <= place.size; at += 8) {
        std::uint64_t word = 0;
        __builtin_memcpy(&word, value + at, sizeof word);
        visit(word);
    }
}

}  // namespace gpuviz::device
