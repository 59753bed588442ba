#include "record/string_table.hpp"

#include <exception>

#include "record/demangle.hpp"

namespace gpuviz::record {

std::uint32_t StringTable::intern(const char* text) noexcept {
    return text == nullptr ? 0 : intern(std::string_view(text));
}

std::uint32_t StringTable::intern(std::string_view text) noexcept {
    try {
        const std::lock_guard lock(mutex_);
        return text_id(text);
    } catch (const std::exception&) {
        return 0;
    }
}

std::uint32_t StringTable::intern_symbol(const char* symbol) noexcept {
    if (symbol == nullptr) {
        return 0;
    }
    try {
        const std::lock_guard lock(mutex_);
        const auto known = symbol_ids_.find(std::string_view(symbol));
        if (known != symbol_ids_.end()) {
            return known->second;
        }
        const std::string name = demangled(symbol);
        const std::uint32_t id = text_id(name.empty() ? std::string_view(symbol) : name);
        symbol_ids_.emplace(symbol, id);
        return id;
    } catch (const std::exception&) {
        return 0;
    }
}

std::vector<std::string> StringTable::from(std::uint32_t first_id) const {
    const std::lock_guard lock(mutex_);
    if (first_id == 0 || first_id > texts_.size()) {
        return {};
    }
    return {texts_.begin() + (first_id - 1), texts_.end()};
}

std::uint32_t StringTable::text_id(std::string_view text) {
    text = text.substr(0, max_length);
    if (text.empty()) {
        return 0;
    }
    const auto known = ids_.find(text);
    if (known != ids_.end()) {
        return known->second;
    }
    const auto added = ids_.emplace(text, std::uint32_t(texts_.size() + 1)).first;
    try {
        texts_.emplace_back(text);
    } catch (const std::exception&) {
        ids_.erase(added);
        throw;
    }
    return added->second;
}

}  // namespace gpuviz::record
