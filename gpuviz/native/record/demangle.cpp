#include "record/demangle.hpp"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace gpuviz::record {

std::string demangled(const char* symbol) {
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> name(
        abi::__cxa_demangle(symbol, nullptr, nullptr, &status), std::free);
    return status == 0 && name ? std::string(name.get()) : std::string();
}

}  // namespace gpuviz::record
