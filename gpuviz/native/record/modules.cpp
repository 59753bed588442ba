#include "record/modules.hpp"

#include <new>
#include <utility>

namespace gpuviz::record {

void Modules::watch(std::uint64_t code, std::function<bool()> name_new) {
    name_new_ = std::move(name_new);
    code_ = code;
    ++generation_;
}

Modules::Number Modules::number_of(std::uint64_t address) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        const auto [known, is_new] = numbers_.try_emplace(address, last_ + 1);
        if (is_new) {
            ++last_;
            has_new_ = true;
        }
        return {known->second, is_new};
    } catch (const std::bad_alloc&) {
        return {0, false};
    }
}

std::uint32_t Modules::find(std::uint64_t address) const noexcept {
    const std::lock_guard lock(mutex_);
    const auto known = numbers_.find(address);
    return known == numbers_.end() ? 0 : known->second;
}

void Modules::forget(std::uint64_t address) noexcept {
    const std::lock_guard lock(mutex_);
    if (numbers_.erase(address) != 0) {
        ++generation_;
    }
}

void Modules::set_name(std::uint32_t number, std::string name) {
    const std::lock_guard lock(mutex_);
    names_.insert_or_assign(number, std::move(name));
}

std::string Modules::name_of(std::uint32_t number) const {
    const std::lock_guard lock(mutex_);
    const auto known = names_.find(number);
    return known == names_.end() ? std::string() : known->second;
}

}  // namespace gpuviz::record
