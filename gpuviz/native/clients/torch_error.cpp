#include "clients/torch_error.hpp"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstdint>
#include <exception>
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

// c10::OutOfMemoryError adds no members to c10::Error, whose constructor is exported.
constexpr const char* construct_name =
    "_ZN3c105ErrorC1ENS_14SourceLocationE"
    "NSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE";
constexpr const char* type_name = "_ZTIN3c1016OutOfMemoryErrorE";

// More than sizeof(c10::Error), which depends on torch's version: below 300 bytes in all.
constexpr std::size_t error_size = 1024;

// c10::Error derives from std::exception alone, whose destructor is virtual.
void destroy(void* error) { static_cast<std::exception*>(error)->~exception(); }

void* of_torch(const char* library, const char* name) {
    // Loaded by torch under this name; RTLD_NOLOAD never loads another one.
    void* const handle = dlopen(library, RTLD_NOLOAD | RTLD_LAZY);
    return handle == nullptr ? nullptr : dlsym(handle, name);
}

}  // namespace

void throw_torch_out_of_memory(const std::string& text) {
    const auto construct = reinterpret_cast<Construct>(of_torch("libc10.so", construct_name));
    void* type = of_torch("libc10.so", type_name);
    if (type == nullptr) {
        type = of_torch("libc10_cuda.so", type_name);
    }
    if (construct == nullptr || type == nullptr) {
        throw std::runtime_error(text);
    }
    void* const error = abi::__cxa_allocate_exception(error_size);
    construct(error, {"gpuviz_torch_malloc", "gpuviz", 0}, text);
    abi::__cxa_throw(error, static_cast<std::type_info*>(type), &destroy);
}

}  // namespace gpuviz::clients
