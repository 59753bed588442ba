#include "cupti/array_extents.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

namespace gpuviz::cupti {
namespace {

constexpr std::size_t word = sizeof(std::uint64_t);
constexpr std::size_t most_dimensions = 8;

bool is_array(std::size_t size) { return size >= 2 * word && size % (2 * word) == 0; }

// 0 for what is no array's type: those of scalars have no width, except bool.
std::uint32_t bytes_of_type(std::string_view name) {
    constexpr std::pair<std::string_view, std::uint32_t> types[]{
        {"bool", 1},    {"int8", 1},     {"uint8", 1},   {"int16", 2},     {"uint16", 2},
        {"float16", 2}, {"bfloat16", 2}, {"int32", 4},   {"uint32", 4},    {"float32", 4},
        {"int64", 8},   {"uint64", 8},   {"float64", 8}, {"complex64", 8}, {"complex128", 16}};
    const auto* const known = std::find_if(std::begin(types), std::end(types),
                                           [&](const auto& each) { return each.first == name; });
    return known == std::end(types) ? 0 : known->second;
}

// The types in `cupy_<function>__<types>`, with one parameter more than types.
std::vector<std::uint32_t> elements_of_ufunc(std::string_view symbol, std::size_t parameters) {
    const std::size_t at = symbol.find("__");
    const std::string_view function = symbol.substr(0, at);
    if (at == symbol.npos || !function.starts_with("cupy_") || function.ends_with("_where")) {
        return {};
    }
    std::vector<std::uint32_t> elements;
    std::string_view types = symbol.substr(at + 2);
    for (std::size_t end = 0; end != types.npos; types.remove_prefix(end + 1)) {
        end = types.find('_');
        elements.push_back(bytes_of_type(types.substr(0, end)));
        if (end == types.npos) {
            break;
        }
    }
    return elements.size() + 1 == parameters ? elements : std::vector<std::uint32_t>();
}

struct ElementsOfFunction {
    std::string symbol;
    std::vector<std::uint32_t> elements;
};

struct DeclaredElements {
    std::mutex mutex;  // guards the rest
    std::unordered_map<std::uint64_t, ElementsOfFunction> by_function;
};

DeclaredElements& declared_elements() {
    static DeclaredElements all;
    return all;
}

std::int64_t member(const std::byte* array, std::size_t index) {
    std::int64_t value = 0;
    std::memcpy(&value, array + index * word, word);
    return value;
}

}  // namespace

std::vector<std::uint32_t> array_elements(std::uint64_t function, const std::string& symbol,
                                          std::span<const std::size_t> sizes) {
    std::vector<std::uint32_t> elements = elements_of_ufunc(symbol, sizes.size());
    if (elements.empty()) {
        DeclaredElements& all = declared_elements();
        const std::lock_guard lock(all.mutex);
        const auto known = all.by_function.find(function);
        if (known != all.by_function.end() && known->second.symbol == symbol) {
            elements = known->second.elements;
        }
    }
    elements.resize(sizes.size());
    for (std::size_t index = 0; index < sizes.size(); ++index) {
        elements[index] = is_array(sizes[index]) ? elements[index] : 0;
    }
    return elements;
}

void declare_array_elements(std::uint64_t function, const std::string& symbol,
                            std::vector<std::uint32_t> elements) {
    DeclaredElements& all = declared_elements();
    const std::lock_guard lock(all.mutex);
    all.by_function[function] = {symbol, std::move(elements)};
}

std::size_t size_set_by_cupy(std::size_t size) noexcept {
    const std::size_t words = size / word;
    const bool is_indexer = size % word == 0 && words >= 3 && words % 2 == 1;
    return is_indexer ? word * (1 + words / 2) : size;
}

ArraySpan span_of_array(const std::byte* array, std::size_t size, std::uint32_t element) noexcept {
    const auto pointer = std::uint64_t(member(array, 0));
    const ArraySpan unknown{pointer, 0, 0};
    const std::size_t dimensions = size / (2 * word) - 1;
    if (dimensions > most_dimensions || member(array, 1) <= 0) {
        return unknown;
    }
    struct Dimension {
        std::uint64_t stride;
        std::uint64_t steps;
    };
    std::array<Dimension, most_dimensions> found;
    std::size_t count = 0;
    std::uint64_t start = pointer;
    for (std::size_t each = 0; each < dimensions; ++each) {
        const std::int64_t length = member(array, 2 + each);
        const std::int64_t stride = member(array, 2 + dimensions + each);
        if (length <= 0) {
            return unknown;
        }
        if (length == 1 || stride == 0) {
            continue;
        }
        const auto distance = stride < 0 ? std::uint64_t(-stride) : std::uint64_t(stride);
        const auto steps = std::uint64_t(length - 1);
        if (stride < 0) {
            start -= distance * steps;
        }
        std::size_t place = count++;
        for (; place > 0 && found[place - 1].stride > distance; --place) {
            found[place] = found[place - 1];
        }
        found[place] = {distance, steps};
    }
    std::uint64_t bytes = element;
    for (std::size_t each = 0; each < count; ++each) {
        if (found[each].stride > bytes) {
            const bool is_alone = each == 0 && found[each].stride <= UINT32_MAX;
            return {start, 0, is_alone ? std::uint32_t(found[each].stride) : 0};
        }
        bytes += found[each].stride * found[each].steps;
    }
    return {start, bytes, 0};
}

}  // namespace gpuviz::cupti
