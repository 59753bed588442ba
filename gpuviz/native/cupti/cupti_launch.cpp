#include "cupti/cupti_launch.hpp"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <functional>
#include <mutex>

namespace gpuviz::cupti {

using record::BlockTouches;

namespace {

// The packed form of parameters: a list of keys, each with a value, up to CU_LAUNCH_PARAM_END.
const std::byte* packed_parameters(void* const* extra) {
    for (; extra != nullptr && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (*extra == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            return static_cast<const std::byte*>(extra[1]);
        }
    }
    return nullptr;
}

}  // namespace

CuptiLaunchArguments::CuptiLaunchArguments() {
    static std::atomic<std::uint64_t> numbers{0};
    number_ = ++numbers;
    void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (driver != nullptr) {
        function_info_ = reinterpret_cast<ParameterInfo>(dlsym(driver, "cuFuncGetParamInfo"));
        kernel_info_ = reinterpret_cast<ParameterInfo>(dlsym(driver, "cuKernelGetParamInfo"));
    }
}

void CuptiLaunchArguments::find(CUfunction function, const char* symbol, void* const* parameters,
                                void* const* extra, const BlockTouches& blocks,
                                const BlockTouches::Touch& touch,
                                std::vector<BlockTouches::Touch>& found) {
    const Parameters& layout = memoized(function, symbol);
    const std::byte* const packed = packed_parameters(extra);
    if (!layout || (parameters == nullptr && packed == nullptr && !layout->empty())) {
        ++unreadable_;
        return;
    }
    for (std::size_t index = 0; index < layout->size(); ++index) {
        const Parameter& parameter = (*layout)[index];
        const auto* const value = parameters != nullptr
                                      ? static_cast<const std::byte*>(parameters[index])
                                      : packed + parameter.offset;
        const std::size_t aligned = (8 - parameter.offset % 8) % 8;
        const std::size_t before = found.size();
        for (std::size_t at = aligned; at + 8 <= parameter.size; at += 8) {
            std::uint64_t word = 0;
            std::memcpy(&word, value + at, sizeof word);
            if (blocks.may_be_block(word)) {
                const bool is_first = found.size() == before;
                found.push_back(touch);
                found.back().address = word;
                found.back().mode = is_first ? parameter.mode.first : parameter.mode.later;
            }
        }
    }
}

void CuptiLaunchArguments::forget_functions() noexcept {
    const std::lock_guard lock(mutex_);
    parameters_.clear();
    ++version_;
}

const CuptiLaunchArguments::Parameters& CuptiLaunchArguments::memoized(CUfunction function,
                                                                       const char* symbol) {
    constexpr std::size_t count = 16;
    thread_local std::array<Memo, count> memos;
    Memo& memo = memos[std::hash<CUfunction>{}(function) / alignof(std::max_align_t) % count];
    const std::uint64_t version = version_.load();
    if (memo.owner != number_ || memo.version != version || memo.function != function) {
        memo = {number_, version, function, parameters_of(function, symbol)};
    }
    return memo.parameters;
}

CuptiLaunchArguments::Parameters CuptiLaunchArguments::parameters_of(CUfunction function,
                                                                     const char* symbol) {
    {
        const std::shared_lock lock(mutex_);
        const auto known = parameters_.find(function);
        if (known != parameters_.end()) {
            return known->second;
        }
    }
    const Parameters asked = ask_driver(function, symbol);
    const std::lock_guard lock(mutex_);
    return parameters_.try_emplace(function, asked).first->second;
}

// Null if the driver does not report them.
CuptiLaunchArguments::Parameters CuptiLaunchArguments::ask_driver(CUfunction function,
                                                                  const char* symbol) const {
    Parameters none;
    for (const ParameterInfo info : {function_info_, kernel_info_}) {
        std::vector<Parameter> parameters;
        Parameter next{0, 0, {}};
        CUresult result = CUDA_ERROR_NOT_FOUND;
        while (info != nullptr && (result = info(function, parameters.size(), &next.offset,
                                                 &next.size)) == CUDA_SUCCESS) {
            parameters.push_back(next);
        }
        // Past the last parameter the result is an invalid value, possibly also for a handle of the
        // other kind.
        if (result == CUDA_ERROR_INVALID_VALUE) {
            none = std::make_shared<const std::vector<Parameter>>();
        }
        if (!parameters.empty()) {
            const std::vector<ParameterMode> modes =
                parameter_modes(symbol == nullptr ? "" : symbol, parameters.size());
            for (std::size_t index = 0; index < parameters.size(); ++index) {
                parameters[index].mode = modes[index];
            }
            return std::make_shared<const std::vector<Parameter>>(std::move(parameters));
        }
    }
    return none;
}

}  // namespace gpuviz::cupti
