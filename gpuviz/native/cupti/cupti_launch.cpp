#include "cupti/cupti_launch.hpp"

#include <dlfcn.h>

#include <array>
#include <cstring>
#include <functional>
#include <mutex>
#include <string>

#include "cupti/array_extents.hpp"

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

bool CuptiLaunchArguments::find(CUfunction function, const char* symbol, void* const* parameters,
                                void* const* extra, const BlockTouches& blocks,
                                const BlockTouches::Touch& touch,
                                std::vector<BlockTouches::Touch>& found) {
    const Parameters& layout = memoized(function, symbol);
    const std::byte* const packed = packed_parameters(extra);
    if (!layout || (parameters == nullptr && packed == nullptr && !layout->empty())) {
        ++unreadable_;
        return false;
    }
    for (std::size_t index = 0; index < layout->size(); ++index) {
        const Parameter& parameter = (*layout)[index];
        const auto* const value = parameters != nullptr
                                      ? static_cast<const std::byte*>(parameters[index])
                                      : packed + parameter.offset;
        find_in(parameter, value, blocks, touch, found);
    }
    return true;
}

void CuptiLaunchArguments::find_in(const Parameter& parameter, const std::byte* value,
                                   const BlockTouches& blocks, const BlockTouches::Touch& touch,
                                   std::vector<BlockTouches::Touch>& found) {
    const auto add = [&](std::uint64_t address, record::AccessMode mode, std::uint64_t bytes) {
        if (blocks.may_be_block(address)) {
            found.push_back(touch);
            found.back().address = address;
            found.back().mode = mode;
            found.back().bytes = bytes;
        }
    };
    if (parameter.element != 0) {
        const ArraySpan span = span_of_array(value, parameter.size, parameter.element);
        return add(span.start, parameter.mode.first, span.bytes);
    }
    const std::size_t aligned = (8 - parameter.offset % 8) % 8;
    const std::size_t before = found.size();
    for (std::size_t at = aligned; at + 8 <= parameter.size; at += 8) {
        std::uint64_t word = 0;
        std::memcpy(&word, value + at, sizeof word);
        add(word, found.size() == before ? parameter.mode.first : parameter.mode.later, 0);
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
        Parameter next{0, 0, {}, 0};
        std::vector<std::size_t> sizes;
        CUresult result = CUDA_ERROR_NOT_FOUND;
        while (info != nullptr && (result = info(function, parameters.size(), &next.offset,
                                                 &next.size)) == CUDA_SUCCESS) {
            parameters.push_back(next);
            sizes.push_back(next.size);
        }
        // Past the last parameter the result is an invalid value, possibly also for a handle of the
        // other kind.
        if (result == CUDA_ERROR_INVALID_VALUE) {
            none = std::make_shared<const std::vector<Parameter>>();
        }
        if (!parameters.empty()) {
            const std::string name = symbol == nullptr ? "" : symbol;
            const std::vector<ParameterMode> modes = parameter_modes(name, parameters.size());
            const std::vector<std::uint32_t> elements =
                array_elements(reinterpret_cast<std::uint64_t>(function), name, sizes);
            for (std::size_t index = 0; index < parameters.size(); ++index) {
                parameters[index].mode = modes[index];
                parameters[index].element = elements[index];
            }
            return std::make_shared<const std::vector<Parameter>>(std::move(parameters));
        }
    }
    return none;
}

}  // namespace gpuviz::cupti
