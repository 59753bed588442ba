#include "cupti/cupti_library.hpp"

#include <dlfcn.h>

#include <stdexcept>
#include <type_traits>

namespace gpuviz::cupti {
namespace {

constexpr std::uint32_t kOldestCupti = 18;  // CUDA 12.0

}  // namespace

std::shared_ptr<const CuptiLibrary> CuptiLibrary::open(const std::string& path) {
    void* const opened = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (opened == nullptr) {
        throw std::runtime_error("CUPTI cannot be opened: " + std::string(dlerror()) + ".");
    }
    std::shared_ptr<CuptiLibrary> library(new CuptiLibrary);
    const auto load = [&](auto& function, const char* symbol) {
        using Function = std::remove_reference_t<decltype(function)>;
        function = reinterpret_cast<Function>(dlsym(opened, symbol));
        return function != nullptr;
    };
#define GPUVIZ_LOAD(member, function)                                            \
    if (!load(library->member, #function)) {                                     \
        throw std::runtime_error("CUPTI at " + path + " has no " #function "."); \
    }
    GPUVIZ_CUPTI_FUNCTIONS(GPUVIZ_LOAD)
#undef GPUVIZ_LOAD
#define GPUVIZ_LOAD(member, function) load(library->member, #function);
    GPUVIZ_CUPTI_NEWER_FUNCTIONS(GPUVIZ_LOAD)
#undef GPUVIZ_LOAD
    library->get_version(&library->version_);
    if (library->version_ < kOldestCupti) {
        throw std::runtime_error("CUPTI at " + path + " has API version " +
                                 std::to_string(library->version_) +
                                 "; gpuviz needs CUPTI of CUDA 12.0 or newer.");
    }
    return library;
}

std::string CuptiLibrary::name(CUptiResult result) const {
    const char* text = nullptr;
    get_result_string(result, &text);
    return text == nullptr ? "CUPTI error " + std::to_string(int(result)) : text;
}

}  // namespace gpuviz::cupti
