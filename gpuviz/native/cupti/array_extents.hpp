#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace gpuviz::cupti {

// The bytes of each parameter's elements if the parameter is an array of CuPy, passed by value, all
// elements of which the kernel accesses; 0 for any other parameter.
//
// CuPy's ufuncs say so in their names, which end in the types of their arguments; those with a
// condition (`where`) do not access all. Other functions were declared, by their handles.
[[nodiscard]] std::vector<std::uint32_t> array_elements(std::uint64_t function,
                                                        const std::string& symbol,
                                                        std::span<const std::size_t> sizes);

// Declares the elements of the leading parameters of one function, in place of an earlier one of
// this handle. Thread-safe.
void declare_array_elements(std::uint64_t function, const std::string& symbol,
                            std::vector<std::uint32_t> elements);

// How much of a parameter of a kernel of CuPy is set: an indexer, a structure of the number of
// elements, the shape and as many indices, has only the indices of the kernel's threads behind the
// shape. CuPy leaves them as the memory was.
[[nodiscard]] std::size_t size_set_by_cupy(std::size_t size) noexcept;

struct ArraySpan {
    std::uint64_t start;   // the lowest address
    std::uint64_t bytes;   // 0: there are gaps between the elements, or it is not known
    std::uint32_t stride;  // the least distance of elements that all have gaps between them; else 0
};

// The memory of an array of CuPy, a structure of a pointer, the number of elements, the shape and
// the strides in bytes. `size` is that of the structure, which has 64-bit members.
[[nodiscard]] ArraySpan span_of_array(const std::byte* array, std::size_t size,
                                      std::uint32_t element) noexcept;

}  // namespace gpuviz::cupti
