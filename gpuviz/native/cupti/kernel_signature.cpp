#include "cupti/kernel_signature.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <utility>

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

std::string_view without_restrict(std::string_view type) {
    for (const std::string_view qualifier : {" __restrict__", " __restrict"}) {
        if (type.ends_with(qualifier)) {
            type.remove_suffix(qualifier.size());
        }
    }
    return type;
}

bool points_to_const(std::string_view type) { return without_restrict(type).ends_with("const*"); }

constexpr std::string_view of_torch = "at::native::";

// Whether a parameter of this type is a tensor of PyTorch's, and whether its elements are const.
std::pair<bool, bool> tensor_of_torch(std::string_view type) {
    for (const std::string_view tensor : {"PackedTensorAccessor<", "::TensorInfo<"}) {
        if (const std::size_t place = type.find(tensor); place != type.npos) {
            const std::string_view element = type.substr(place + tensor.size());
            return {true, element.substr(0, element.find(',')).ends_with(" const")};
        }
    }
    const std::string_view pointer = without_restrict(type);
    return {pointer.ends_with('*') && !pointer.ends_with("**"), points_to_const(type)};
}

std::size_t outputs_of_ufunc(std::string_view symbol) {
    for (const std::string_view two : {"cupy_divmod__", "cupy_frexp__", "cupy_modf__"}) {
        if (symbol.starts_with(two)) {
            return 2;
        }
    }
    return symbol.starts_with("cupy_") && symbol.find("__") != symbol.npos ? 1 : 0;
}

struct LibraryKernel {
    std::string_view space;     // in its qualified name; empty if it has none
    std::string_view function;  // without template arguments
    // Of the leading parameters: r, w, + for both, ? for unknown; in parentheses that of the first
    // pointer in a structure and that of the others, in brackets those of an array of pointers.
    std::string_view modes;
};

// Tried by comparing memory before and after calls that launch them: tests/gpu/access_programs.py.
constexpr std::array library_kernels = std::to_array<LibraryKernel>({
    {"cub::", "DeviceReduceKernel", "rw"},
    {"cub::", "DeviceReduceSingleTileKernel", "rw"},
    {"cub::", "DeviceFixedSizeSegmentedReduceKernel", "rw"},
    {"cub::", "DeviceScanInitKernel", "w"},
    {"cub::", "DeviceScanKernel", "rw+"},
    {"cub::", "DeviceCompactInitKernel", "w?w"},
    {"cub::", "DeviceHistogramInitKernel", "?ww"},
    {"cub::", "DeviceHistogramSweepKernel", "r??+"},
    {"cub::", "DeviceRadixSortHistogramKernel", "+r"},
    {"cub::", "DeviceRadixSortExclusiveSumKernel", "+"},
    {"cub::", "DeviceRadixSortOnesweepKernel", "++wrwrwr"},
    {"cub::", "DeviceRadixSortSingleTileKernel", "rwrw"},
    {"cub::", "DeviceMergeSortBlockSortKernel", "?rr"},
    {"cub::", "DeviceMergeSortPartitionKernel", "?rr??w"},
    {"cub::", "DeviceMergeSortMergeKernel", "???????r"},
    {"", "init_curand", "w"},
    {"", "execute_dist", "+ww"},
    {"", "gen_sequenced", "+w"},
    {"", "vector_fft_symm_r2c", "(rw)"},
    {"", "vector_fft_symm_c2r", "(rw)"},
    {"", "vector_fft", "(rw)"},
    {"", "multi_bluestein_fft", "(rw)"},
    {"cusparse::", "csrmv_v3_kernel", "?rrrr???r+"},
    {"cusparse::", "iota_kernel", "?w"},
    {"cusparse::", "csr_partition_kernel", "r????w"},
    {of_torch, "vectorized_elementwise_kernel", "??[wr]"},
    {of_torch, "unrolled_elementwise_kernel", "??[wr]"},
    {of_torch, "elementwise_kernel", "?(wr)"},
    {of_torch, "reduce_kernel", "(rw)"},
    {of_torch, "vectorized_gather_kernel", "wrr"},
    {of_torch, "CatArrayBatchedCopy", "wr"},
    {of_torch, "CatArrayBatchedCopy_contig", "wr"},
    {of_torch, "CatArrayBatchedCopy_vectorized", "wr"},
    {of_torch, "CatArrayBatchedCopy_aligned16_contig", "wr"},
    {of_torch, "CatArrayBatchedCopy_alignedK_contig", "wr"},
});

// The name before the parameters, without template arguments.
std::string function_of(std::string_view name) {
    std::string found;
    int depth = 0;
    for (const char letter : name) {
        if (letter == '<' || letter == '>') {
            depth += letter == '<' ? 1 : -1;
            continue;
        }
        // A namespace without a name is in parentheses, too.
        if (depth == 0 && letter == '(' && !found.ends_with("::")) {
            return found;
        }
        if (depth == 0) {
            found += letter;
        }
    }
    return found;
}

AccessMode mode_of(char letter) {
    switch (letter) {
        case 'r':
            return AccessMode::read;
        case 'w':
            return AccessMode::write;
        case '+':
            return AccessMode::read_write;
        default:
            return AccessMode::unknown;
    }
}

std::vector<ParameterMode> parsed(std::string_view letters) {
    std::vector<ParameterMode> modes;
    for (std::size_t place = 0; place < letters.size(); ++place) {
        if (letters[place] == '(' || letters[place] == '[') {
            modes.push_back(
                {mode_of(letters[place + 1]), mode_of(letters[place + 2]), letters[place] == '['});
            place += 3;
        } else {
            modes.push_back({mode_of(letters[place]), mode_of(letters[place])});
        }
    }
    return modes;
}

std::vector<ParameterMode> modes_of_library(std::string_view name) {
    const std::string function = function_of(name);
    for (const LibraryKernel& known : library_kernels) {
        if (!function.ends_with(known.function)) {
            continue;
        }
        const std::string_view before =
            std::string_view(function).substr(0, function.size() - known.function.size());
        const bool is_whole = before.empty() || before.ends_with(' ') || before.ends_with(':');
        if (is_whole && before.find(known.space) != before.npos) {
            return parsed(known.modes);
        }
    }
    return {};
}

// Whoever passes a pointer to const means to write to the others.
template <typename Know>
void know_tensors(const std::vector<std::string_view>& types, Know&& know) {
    const auto is_const = [](std::string_view type) { return tensor_of_torch(type).second; };
    if (std::ranges::none_of(types, is_const)) {
        return;
    }
    for (std::size_t index = 0; index < types.size(); ++index) {
        const auto [is_tensor, is_read] = tensor_of_torch(types[index]);
        const AccessMode mode = is_read ? AccessMode::read : AccessMode::read_write;
        if (is_tensor) {
            know(index, {mode, mode});
        }
    }
}

class Declarations {
  public:
    void add(const std::string& symbol, std::vector<AccessMode> modes) {
        const std::lock_guard lock(mutex_);
        const auto [known, is_new] = modes_.try_emplace(symbol, modes);
        if (is_new) {
            return;
        }
        std::vector<AccessMode>& before = known->second;
        before.resize(std::min(before.size(), modes.size()));
        for (std::size_t index = 0; index < before.size(); ++index) {
            if (before[index] != modes[index]) {
                before[index] = AccessMode::unknown;
            }
        }
    }

    std::vector<AccessMode> of(const std::string& symbol) {
        const std::lock_guard lock(mutex_);
        const auto known = modes_.find(symbol);
        return known == modes_.end() ? std::vector<AccessMode>() : known->second;
    }

  private:
    std::mutex mutex_;
    std::unordered_map<std::string, std::vector<AccessMode>> modes_;
};

Declarations& declarations() {
    static Declarations all;
    return all;
}

}  // namespace

void declare_modes(const std::string& symbol, std::vector<AccessMode> modes) {
    declarations().add(symbol, std::move(modes));
}

std::vector<ParameterMode> parameter_modes(const std::string& symbol, std::size_t parameters) {
    std::vector<ParameterMode> modes(parameters);
    const auto know = [&modes](std::size_t index, ParameterMode mode) {
        if (index < modes.size() && modes[index].first == AccessMode::unknown) {
            modes[index] = mode;
        }
    };
    const std::size_t outputs = outputs_of_ufunc(symbol);
    if (outputs != 0 && parameters > outputs) {
        const std::size_t inputs = parameters - 1 - outputs;
        for (std::size_t index = 0; index + 1 < parameters; ++index) {
            const AccessMode mode = index < inputs ? AccessMode::read : AccessMode::write;
            know(index, {mode, mode});
        }
        return modes;
    }
    const std::string name = record::demangled(symbol.c_str());
    const std::vector<std::string_view> types = parameter_types(name);
    for (std::size_t index = 0; index < types.size() && types.size() == parameters; ++index) {
        if (points_to_const(types[index])) {
            know(index, {AccessMode::read, AccessMode::read});
        }
    }
    if (name.find(of_torch) != name.npos && types.size() == parameters) {
        know_tensors(types, know);
    }
    const std::vector<AccessMode> declared = declarations().of(symbol);
    for (std::size_t index = 0; index < declared.size(); ++index) {
        know(index, {declared[index], declared[index]});
    }
    const std::vector<ParameterMode> of_library = modes_of_library(name);
    for (std::size_t index = 0; index < of_library.size(); ++index) {
        know(index, of_library[index]);
    }
    return modes;
}

}  // namespace gpuviz::cupti
