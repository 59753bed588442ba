// The effects of pickle opcodes on the reader's stack and memo.
#include <algorithm>
#include <cstring>
#include <limits>

#include "formats/format_error.hpp"
#include "formats/pickle_reader.hpp"

namespace gpuviz::formats {

namespace {

using Kind = PickleValue::Kind;

// Python's own pickles have gaps in the memo only after pickletools.optimize.
constexpr std::uint64_t largest_memo_gap = 4096;
constexpr std::size_t largest_count = PickleItems::marked - 1;

}  // namespace

void PickleReader::check_frame() {
    const std::uint64_t length = source_->little_endian(8);
    const std::uint64_t left = source_->size() - source_->offset();
    if (length > left) {
        fail("truncated (a frame of " + std::to_string(length) + " bytes must follow, there are " +
             std::to_string(left) + ")");
    }
}

void PickleReader::push(PickleValue value) {
    if (stack_.size() == stack_.capacity()) arena_->charge(8 * (stack_.capacity() + 1));
    stack_.push_back(value);
}

PickleValue& PickleReader::top() {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (stack_.size() <= floor) fail("a value is used that is not there");
    return stack_.back();
}

PickleValue PickleReader::pop() {
    const PickleValue value = top();
    stack_.pop_back();
    return value;
}

std::size_t PickleReader::pop_mark() {
    if (marks_.empty()) fail("an opcode needs a mark, and there is none");
    const std::size_t height = marks_.back();
    marks_.pop_back();
    return height;
}

void PickleReader::push_integer(std::int64_t value) {
    if (PickleValue::fits(value)) {
        push(PickleValue::of_integer(value));
        return;
    }
    if (value < 0) {
        push(PickleValue::at(Kind::other, nullptr));
        return;
    }
    auto* place = arena_->take<std::uint64_t>(1);
    *place = static_cast<std::uint64_t>(value);
    push(PickleValue::at(Kind::large_integer, place));
}

void PickleReader::push_long(std::uint64_t width) {
    const std::string_view bytes = source_->bytes(width);
    std::uint64_t value = 0;
    const bool is_negative = width > 0 && (static_cast<unsigned char>(bytes.back()) & 0x80) != 0;
    if (width == 9 && bytes.back() == 0) {
        auto* place = arena_->take<std::uint64_t>(1);
        std::memcpy(place, bytes.data(), 8);
        push(PickleValue::at(Kind::large_integer, place));
        return;
    }
    if (width > 8) {
        push(PickleValue::at(Kind::other, nullptr));
        return;
    }
    if (is_negative) value = ~std::uint64_t{0};
    if (width > 0) std::memcpy(&value, bytes.data(), bytes.size());
    push_integer(static_cast<std::int64_t>(value));
}

void PickleReader::push_text(std::uint64_t size) {
    if (size > std::numeric_limits<std::uint32_t>::max()) {
        fail("a text of " + std::to_string(size) + " bytes");
    }
    push(PickleValue::at(Kind::text, texts_->intern(source_->bytes(size))));
}

void PickleReader::push_other(std::uint64_t size) {
    source_->bytes(size);
    push(PickleValue::at(Kind::other, nullptr));
}

void PickleReader::push_items(Kind kind, std::size_t first) {
    auto* items = arena_->take<PickleItems>(1);
    *items = {};
    if (kind == Kind::dict && (stack_.size() - first) % 2 != 0) fail("a dict key without a value");
    append(*items, first);
    push(PickleValue::at(kind, items));
}

void PickleReader::extend(Kind kind, std::size_t first) {
    const std::size_t floor = marks_.empty() ? 0 : marks_.back();
    if (first <= floor) fail("an opcode adds to a container that is not there");
    if (kind == Kind::dict && (stack_.size() - first) % 2 != 0) fail("a dict key without a value");
    const PickleValue container = stack_[first - 1];
    if (container.kind() != kind || container.items() == nullptr) {
        fail("an opcode adds to a container of another kind");
    }
    append(*container.items(), first);
}

void PickleReader::append(PickleItems& items, std::size_t first) {
    const std::size_t added = stack_.size() - first;
    const std::size_t count = items.count + added;
    if (count > items.capacity) {
        if (count > largest_count) fail("a container of more than 2**32 - 2 items");
        // Small containers are complete; one that grows twice will grow further.
        const std::size_t capacity =
            items.capacity == 0 ? count : std::max(count, std::size_t{2} * items.capacity);
        auto* moved = arena_->take<PickleValue>(std::min(capacity, largest_count));
        std::copy_n(items.first, items.count, moved);
        items.first = moved;
        items.capacity = static_cast<std::uint32_t>(std::min(capacity, largest_count));
    }
    std::copy_n(stack_.data() + first, added, items.first + items.count);
    items.count = static_cast<std::uint32_t>(count);
    stack_.resize(first);
}

void PickleReader::remember(std::uint64_t number) {
    const PickleValue value = top();
    if (number >= memo_.size() + largest_memo_gap) {
        fail("memo entry " + std::to_string(number) + " after " + std::to_string(memo_.size()));
    }
    const auto entry = static_cast<std::size_t>(number);
    if (entry >= memo_.size()) {
        if (entry >= memo_.capacity()) arena_->charge(9 * (memo_.capacity() + largest_memo_gap));
        memo_.resize(entry + 1);
        known_.resize(entry + 1);
    }
    memo_[entry] = value;
    known_[entry] = 1;
}

void PickleReader::recall(std::uint64_t number) {
    const auto entry = static_cast<std::size_t>(number);
    if (number >= memo_.size() || known_[entry] == 0) {
        fail("memo entry " + std::to_string(number) + " is used before it is made");
    }
    push(memo_[entry]);
}

void PickleReader::fail(const std::string& problem) const {
    throw FormatError("byte " + std::to_string(opcode_offset_), problem);
}

}  // namespace gpuviz::formats
