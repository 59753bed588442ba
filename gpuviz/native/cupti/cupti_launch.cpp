#include "cupti/cupti_launch.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "cupti/array_extents.hpp"
#include "record/mixing.hpp"

namespace gpuviz::cupti {

using record::BlockTouches;

namespace {

// The state of a hash after the bytes of a parameter that are in no aligned word.
std::uint64_t with_rest(std::uint64_t state, const device::ParameterPlace& place,
                        const std::byte* value) noexcept {
    const std::size_t before = std::min(device::first_word(place), place.size);
    const std::size_t after = (place.size - before) % 8;
    std::uint64_t parts[2] = {};
    std::memcpy(&parts[0], value, before);
    std::memcpy(&parts[1], value + place.size - after, after);
    return record::mixed(record::mixed(state, parts[0]), parts[1]);
}

// The same after its aligned words that are no addresses of blocks.
std::uint64_t with_numbers(std::uint64_t state, const device::ParameterPlace& place,
                           const std::byte* value, const BlockTouches& blocks) {
    device::for_each_word(place, value, [&](std::uint64_t word) {
        state = blocks.may_be_block(word) ? state : record::mixed(state, word);
    });
    return state;
}

}  // namespace

CuptiLaunchArguments::CuptiLaunchArguments() {
    static std::atomic<std::uint64_t> numbers{0};
    number_ = ++numbers;
}

bool CuptiLaunchArguments::find(CUfunction function, const char* symbol, void* const* parameters,
                                void* const* extra, const BlockTouches& blocks,
                                const BlockTouches::Touch& touch,
                                std::vector<BlockTouches::Touch>& found) {
    const Parameters& layout = memoized(function, symbol);
    const device::ParameterValues values(parameters, extra);
    if (!layout || (!values.exist() && !layout->empty())) {
        ++unreadable_;
        return false;
    }
    const std::size_t first = found.size();
    std::uint64_t content = 1;
    for (const Parameter& parameter : *layout) {
        const std::byte* value = values.at(parameter.index, parameter.place);
        if (parameter.element != 0) {
            find_in_array(parameter, value, blocks, touch, found);
            content = with_numbers(content, parameter.place, value, blocks);
            continue;
        }
        record::AccessMode mode = parameter.mode.first;
        device::ParameterPlace place = parameter.place;
        const TorchParameter& torch = parameter.torch;
        if (const auto after = with_numbers_of(content, value, torch)) {
            place = {place.offset + torch.addresses, torch.address_count * sizeof(std::uint64_t)};
            value += torch.addresses;
            content = *after;
        } else if (parameter.has_rest) {
            content = with_rest(content, place, value);
        }
        device::for_each_word(place, value, [&](std::uint64_t word) {
            if (blocks.may_be_block(word)) {
                found.push_back({touch.time_ns, word, touch.correlation, mode});
                mode = parameter.mode.later;
            } else {
                content = record::mixed(content, word);
                mode = parameter.mode.is_array ? parameter.mode.later : mode;
            }
        });
    }
    if (found.size() > first) {
        found[first].content = std::max(content, std::uint64_t{1});
    }
    return true;
}

void CuptiLaunchArguments::find_in_array(const Parameter& parameter, const std::byte* value,
                                         const BlockTouches& blocks, BlockTouches::Touch touch,
                                         std::vector<BlockTouches::Touch>& found) {
    const ArraySpan span = span_of_array(value, parameter.place.size, parameter.element);
    if (blocks.may_be_block(span.start)) {
        touch.address = span.start;
        touch.mode = parameter.mode.first;
        touch.bytes = span.bytes;
        touch.element = parameter.element;
        touch.stride = span.stride;
        found.push_back(touch);
    }
}

void CuptiLaunchArguments::forget_functions() noexcept {
    const std::lock_guard lock(mutex_);
    parameters_.clear();
    ++version_;
}

const CuptiLaunchArguments::Parameters& CuptiLaunchArguments::memoized(CUfunction function,
                                                                       const char* symbol) {
    // A training step launches some hundreds of functions.
    constexpr std::size_t count_log2 = 9;
    constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;  // 2**64 divided by the golden ratio
    thread_local std::array<Memo, std::size_t{1} << count_log2> memos;
    const auto handle = reinterpret_cast<std::uint64_t>(function);
    Memo& memo = memos[(handle * golden) >> (64 - count_log2)];
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
    const std::optional<device::ParameterPlaces> places = driver_.of(function);
    if (!places) {
        return nullptr;
    }
    std::vector<std::size_t> sizes;
    for (const device::ParameterPlace& place : *places) {
        sizes.push_back(place.size);
    }
    const std::string name = symbol == nullptr ? "" : symbol;
    const std::vector<ParameterMode> modes = parameter_modes(name, places->size());
    const std::vector<std::uint32_t> elements =
        array_elements(reinterpret_cast<std::uint64_t>(function), name, sizes);
    const bool is_of_cupy = name.starts_with("cupy") ||
                            std::ranges::any_of(elements, [](auto each) { return each != 0; });
    std::vector<Parameter> parameters;
    for (std::size_t index = 0; index < places->size(); ++index) {
        device::ParameterPlace place = (*places)[index];
        if (is_of_cupy) {
            place.size = size_set_by_cupy(place.size);
        }
        const bool has_rest = device::first_word(place) != 0 || place.size % 8 != 0;
        parameters.push_back({index, place, modes[index], elements[index], has_rest,
                              torch_parameter(name, place.size)});
    }
    return std::make_shared<const std::vector<Parameter>>(std::move(parameters));
}

}  // namespace gpuviz::cupti
