#include "cupti/kernel_signature.hpp"

#include <algorithm>
#include <cstddef>
#include <string_view>

#include "record/demangle.hpp"

namespace gpuviz::cupti {

using record::AccessMode;

namespace {

// The comma-separated texts in the last parentheses; nothing if there are none.
std::vector<std::string_view> parameter_types(std::string_view name) {
    if (!name.ends_with(')')) {
        return {};
    }
    std::vector<std::string_view> types;
    std::size_t end = name.size() - 1;
    int depth = 0;
    for (std::size_t place = end; place-- > 0;) {
        const char letter = name[place];
        if (letter == ')' || letter == '>' || letter == ']') {
            ++depth;
        } else if ((letter == '(' || letter == '<' || letter == '[') && depth > 0) {
            --depth;
        } else if ((letter == ',' || letter == '(') && depth == 0) {
            types.push_back(name.substr(place + 1, end - place - 1));
            end = place;
            if (letter == '(') {
                std::reverse(types.begin(), types.end());
                return types;
            }
        }
    }
    return {};
}

bool points_to_const(std::string_view type) {
    for (const std::string_view qualifier : {" __restrict__", " __restrict"}) {
        if (type.ends_with(qualifier)) {
            type.remove_suffix(qualifier.size());
        }
    }
    return type.ends_with("const*");
}

std::size_t outputs_of_ufunc(std::string_view symbol) {
    for (const std::string_view two : {"cupy_divmod__", "cupy_frexp__", "cupy_modf__"}) {
        if (symbol.starts_with(two)) {
            return 2;
        }
    }
    return symbol.starts_with("cupy_") && symbol.find("__") != symbol.npos ? 1 : 0;
}

}  // namespace

std::vector<AccessMode> parameter_modes(const std::string& symbol, std::size_t parameters) {
    std::vector<AccessMode> modes(parameters, AccessMode::unknown);
    const std::size_t outputs = outputs_of_ufunc(symbol);
    if (outputs != 0 && parameters > outputs) {
        const std::size_t inputs = parameters - 1 - outputs;
        std::fill_n(modes.begin(), inputs, AccessMode::read);
        std::fill_n(modes.begin() + std::ptrdiff_t(inputs), outputs, AccessMode::write);
        return modes;
    }
    const std::string name = record::demangled(symbol.c_str());
    const std::vector<std::string_view> types = parameter_types(name);
    if (types.size() == parameters) {
        std::transform(types.begin(), types.end(), modes.begin(), [](std::string_view type) {
            return points_to_const(type) ? AccessMode::read : AccessMode::unknown;
        });
    }
    return modes;
}

}  // namespace gpuviz::cupti
