#include "formats/pickle_value.hpp"

#include <cstring>
#include <functional>
#include <string>

#include "formats/format_error.hpp"
#include "formats/pickle_texts.hpp"

namespace gpuviz::formats {

namespace {

constexpr std::size_t chunk_words = std::size_t{1} << 17;

}  // namespace

void PickleArena::charge(std::uint64_t bytes) {
    used_ += bytes;
    if (used_ > limit_) {
        throw FormatError("", "its values need more than " + std::to_string(limit_ >> 20) +
                                  " MiB of memory, the most that is read");
    }
}

std::uint64_t* PickleArena::take_words(std::size_t words) {
    if (words > left_) {
        const std::size_t size = words > chunk_words / 4 ? words : chunk_words;
        charge(size * sizeof(std::uint64_t));
        auto chunk = std::make_unique_for_overwrite<std::uint64_t[]>(size);
        std::uint64_t* start = chunk.get();
        chunks_.push_back(std::move(chunk));
        if (size == words) return start;
        next_ = start;
        left_ = size;
    }
    std::uint64_t* taken = next_;
    next_ += words;
    left_ -= words;
    return taken;
}

const PickleText* PickleTexts::intern(std::string_view text) {
    std::size_t slot = slot_of(text);
    if (slots_[slot] != nullptr) return slots_[slot];
    if (2 * (texts_.size() + 1) > slots_.size()) {
        grow();
        slot = slot_of(text);
    }
    char* characters = arena_->take<char>(text.size());
    if (!text.empty()) std::memcpy(characters, text.data(), text.size());
    auto* added = arena_->take<PickleText>(1);
    *added = {static_cast<std::uint32_t>(texts_.size() + 1),
              static_cast<std::uint32_t>(text.size()), characters};
    texts_.push_back(added);
    slots_[slot] = added;
    return added;
}

std::size_t PickleTexts::slot_of(std::string_view text) const noexcept {
    const std::size_t mask = slots_.size() - 1;
    std::size_t slot = std::hash<std::string_view>{}(text)&mask;
    while (slots_[slot] != nullptr && slots_[slot]->view() != text) slot = (slot + 1) & mask;
    return slot;
}

void PickleTexts::grow() {
    arena_->charge(2 * slots_.size() * sizeof(void*));
    std::vector<const PickleText*> old(2 * slots_.size());
    old.swap(slots_);
    for (const PickleText* text : old) {
        if (text != nullptr) slots_[slot_of(text->view())] = text;
    }
}

}  // namespace gpuviz::formats
