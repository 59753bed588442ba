#include "python/object_pages.hpp"

#include <stdexcept>

namespace gpuviz::python {

ObjectPages::Id ObjectPages::add_page(std::uint64_t key) {
    if (pages_.size() >> (32 - place_bits)) {
        throw std::length_error("the heap is too large to be searched");
    }
    pages_.push_back(std::make_unique<Page>());
    return numbers_[key] = static_cast<Id>(pages_.size() - 1);
}

void ObjectPages::clear(Bit bit) noexcept {
    for (const auto& page : pages_) {
        (*page)[bit].fill(0);
    }
}

}  // namespace gpuviz::python
