#include "clients/torch_error.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdint>
#include <stdexcept>
#include <typeinfo>

namespace gpuviz::clients {

namespace {

// c10::SourceLocation, as declared in c10/util/StringUtil.h.
struct SourceLocation {
    const char* function;
    const char* file;
    std::uint32_t line;
};

// `this` is the first argument of a constructor. c10 is compiled with the same C++ ABI: the names
// say so, else they are not found.
using Construct = void (*)(void* error, SourceLocation location, std::string text);
using Destroy = void (*)(void* error);

// c10::OutOfMemoryError adds no members to c10::Error, whose constructor is exported.
constexpr const char* construct_name =
    "_ZN3c105ErrorC1ENS_14SourceLocationE"
    "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
constexpr const char* destroy_name = "_ZN3c105ErrorD1Ev";
constexpr const char* type_name = "_ZTIN3c1016OutOfMemoryErrorE";

// More than sizeof(c10::Error) of any torch: 208 bytes in 2.11.
constexpr std::size_t error_size = 1024;

void* of_torch(const char* library, const char* name) {
    // Loaded by torch under this name; RTLD_NOLOAD never loads another one.
    void* const handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
    return handle == nullptr ? nullptr : dlsym(handle, name);
}

}  // namespace

void throw_torch_out_of_memory(const std::string& text) {
    const auto construct = reinterpret_cast<Construct>(of_torch("libc10.so", construct_name));
    const auto destroy = reinterpret_cast<Destroy>(of_torch("libc10.so", destroy_name));
    void* type = of_torch("libc10.so", type_name);
    if (type == nullptr) {
        type = of_torch("libc10_cuda.so", type_name);
    }
    if (construct == nullptr || type == nullptr) {
        throw std::runtime_error(text);
    }
    void* const error = abi::__cxa_allocate_exception(error_size);
    construct(error, {"gpuviz_torch_malloc", "gpuviz", 0}, text);
    abi::__cxa_throw(error, static_cast<std::type_info*>(type), destroy);
}

}  // namespace gpuviz::clients
