#pragma once

#include <cuda.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <vector>

#include "cupti/kernel_signature.hpp"
#include "cupti/torch_parameters.hpp"
#include "device/cuda_parameters.hpp"
#include "record/block_touches.hpp"

namespace gpuviz::cupti {

// Searches the parameters of kernel launches for addresses of allocated memory.
//
// Every aligned word of every parameter is examined, so that pointers inside structures are found,
// but of PyTorch's tensors only what is set.
// Thread-safe.
class CuptiLaunchArguments {
  public:
    // Opens the driver, which is already loaded. If it lacks the functions, nothing is found.
    CuptiLaunchArguments();

    // Appends an entry for each address in a launch's parameters, as a copy of `touch`. Exactly one
    // of `parameters` and `extra` is not null. The first entry has the content of everything else
    // in the parameters, but of arrays of CuPy without gaps. Returns whether they could be read.
    bool find(CUfunction function, const char* symbol, void* const* parameters, void* const* extra,
              const record::BlockTouches& blocks, const record::BlockTouches::Touch& touch,
              std::vector<record::BlockTouches::Touch>& found);

    // Invalidates the cached functions, whose handles may be reused.
    void forget_functions() noexcept;

    // Whether the driver has the functions.
    [[nodiscard]] bool is_supported() const noexcept { return driver_.is_supported(); }
    // The number of launches whose parameters could not be read.
    [[nodiscard]] std::uint64_t unreadable() const noexcept { return unreadable_.load(); }

  private:
    struct Parameter {
        std::size_t index;
        device::ParameterPlace place;
        ParameterMode mode;
        std::uint32_t element;  // see array_elements()
        bool has_rest;          // bytes in no aligned word
        TorchParameter torch;
    };
    static void find_in_array(const Parameter& parameter, const std::byte* value,
                              const record::BlockTouches& blocks, record::BlockTouches::Touch touch,
                              std::vector<record::BlockTouches::Touch>& found);
    using Parameters = std::shared_ptr<const std::vector<Parameter>>;

    struct Memo {  // one of the calling thread's last functions, which are launched again
        std::uint64_t owner = 0;
        std::uint64_t version = 0;
        CUfunction function = nullptr;
        Parameters parameters;
    };

    [[nodiscard]] const Parameters& memoized(CUfunction function, const char* symbol);
    [[nodiscard]] Parameters parameters_of(CUfunction function, const char* symbol);
    [[nodiscard]] Parameters ask_driver(CUfunction function, const char* symbol) const;

    device::CudaParameters driver_;
    std::uint64_t number_ = 0;               // among all objects of this class
    std::atomic<std::uint64_t> version_{1};  // changes when functions are forgotten
    std::shared_mutex mutex_;                // guards parameters_
    std::unordered_map<CUfunction, Parameters> parameters_;
    std::atomic<std::uint64_t> unreadable_{0};
};

}  // namespace gpuviz::cupti
