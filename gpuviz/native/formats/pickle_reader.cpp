#include "formats/pickle_reader.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "formats/format_error.hpp"

namespace gpuviz::formats {

namespace {

using Kind = PickleValue::Kind;

// The opcodes are those of Python's Lib/pickletools.py.
constexpr std::uint8_t protocol_opcode = 0x80;
constexpr std::uint8_t stop_opcode = '.';
constexpr unsigned lowest_protocol = 2;
constexpr unsigned highest_protocol = 5;

// Empty if the opcode cannot execute anything.
std::string_view name_of_refused(std::uint8_t opcode) {
    switch (opcode) {
        case 'c':
            return "GLOBAL";
        case 0x93:
            return "STACK_GLOBAL";
        case 'R':
            return "REDUCE";
        case 'b':
            return "BUILD";
        case 'i':
            return "INST";
        case 'o':
            return "OBJ";
        case 0x81:
            return "NEWOBJ";
        case 0x92:
            return "NEWOBJ_EX";
        case 'P':
            return "PERSID";
        case 'Q':
            return "BINPERSID";
        case 0x82:
        case 0x83:
        case 0x84:
            return "EXT";
        case 0x97:
            return "NEXT_BUFFER";
        case 0x98:
            return "READONLY_BUFFER";
        default:
            return "";
    }
}

std::string hex(std::uint8_t value) {
    constexpr std::string_view digits = "0123456789abcdef";
    return {'0', 'x', digits[value >> 4], digits[value & 15]};
}

}  // namespace

PickleReader::PickleReader(ByteSource& source, PickleArena& arena, PickleTexts& texts)
    : source_(&source), arena_(&arena), texts_(&texts) {}

PickleValue PickleReader::read() {
    start();
    try {
        std::uint8_t opcode = 0;
        do {
            opcode_offset_ = source_->offset();
            opcode = source_->byte();
        } while (step(opcode));
    } catch (const FormatError& error) {
        if (error.place().empty()) fail(error.what());
        throw;
    }
    if (stack_.size() != 1 || !marks_.empty()) {
        fail("the pickle ends with " + std::to_string(stack_.size()) + " values, expected 1");
    }
    return stack_.back();
}

void PickleReader::start() {
    if (source_->size() < 2 || source_->byte() != protocol_opcode) {
        throw FormatError("byte 0", "no pickle of protocol 2 to 5");
    }
    const unsigned protocol = source_->byte();
    if (protocol < lowest_protocol || protocol > highest_protocol) {
        throw FormatError("byte 1",
                          "pickle of protocol " + std::to_string(protocol) + ", expected 2 to 5");
    }
}

bool PickleReader::step(std::uint8_t opcode) {
    if (opcode == stop_opcode) return false;
    if (step_memo(opcode) || step_scalar(opcode) || step_text(opcode) || step_container(opcode)) {
        return true;
    }
    const std::string_view refused = name_of_refused(opcode);
    if (!refused.empty()) {
        fail("the opcode " + std::string(refused) +
             " could run code and is refused; a memory snapshot has plain values only");
    }
    fail("opcode " + hex(opcode) + " is not one that a memory snapshot has in protocols 2 to 5");
}

bool PickleReader::step_memo(std::uint8_t opcode) {
    switch (opcode) {
        case 'h':
            recall(source_->byte());
            return true;
        case 'j':
            recall(source_->little_endian(4));
            return true;
        case 0x94:
            remember(memo_.size());
            return true;
        case 'q':
            remember(source_->byte());
            return true;
        case 'r':
            remember(source_->little_endian(4));
            return true;
        default:
            return false;
    }
}

bool PickleReader::step_scalar(std::uint8_t opcode) {
    switch (opcode) {
        case 'N':
            push({});
            return true;
        case 0x88:
        case 0x89:
            push(PickleValue::of_boolean(opcode == 0x88));
            return true;
        case 'K':
            push_integer(source_->byte());
            return true;
        case 'M':
            push_integer(static_cast<std::int64_t>(source_->little_endian(2)));
            return true;
        case 'J':
            push_integer(static_cast<std::int32_t>(source_->little_endian(4)));
            return true;
        case 0x8a:
            push_long(source_->byte());
            return true;
        case 0x8b:
            push_long(source_->little_endian(4));
            return true;
        case 'G': {
            auto* place = arena_->take<double>(1);
            std::uint64_t bits = 0;  // big-endian
            for (int i = 0; i < 8; ++i) bits = bits << 8 | source_->byte();
            *place = std::bit_cast<double>(bits);
            push(PickleValue::at(Kind::floating, place));
            return true;
        }
        default:
            return false;
    }
}

bool PickleReader::step_text(std::uint8_t opcode) {
    switch (opcode) {
        case 0x8c:
            push_text(source_->byte());
            return true;
        case 'X':
            push_text(source_->little_endian(4));
            return true;
        case 0x8d:
            push_text(source_->little_endian(8));
            return true;
        case 'U':
            push_text(source_->byte());
            return true;
        case 'T':
            push_text(source_->little_endian(4));
            return true;
        case 'C':
            push_other(source_->byte());
            return true;
        case 'B':
            push_other(source_->little_endian(4));
            return true;
        case 0x8e:
        case 0x96:
            push_other(source_->little_endian(8));
            return true;
        default:
            return false;
    }
}

bool PickleReader::step_container(std::uint8_t opcode) {
    switch (opcode) {
        case '(':
            if (marks_.size() == marks_.capacity()) arena_->charge(8 * (marks_.capacity() + 1));
            marks_.push_back(stack_.size());
            return true;
        case ']':
            push_items(Kind::list, stack_.size());
            return true;
        case '}':
            push_items(Kind::dict, stack_.size());
            return true;
        case ')':
            push_items(Kind::tuple, stack_.size());
            return true;
        case 0x8f:
            push_items(Kind::other, stack_.size());
            return true;
        case 'l':
            push_items(Kind::list, pop_mark());
            return true;
        case 't':
            push_items(Kind::tuple, pop_mark());
            return true;
        case 'd':
            push_items(Kind::dict, pop_mark());
            return true;
        case 0x91:
            push_items(Kind::other, pop_mark());
            return true;
        case 0x85:
        case 0x86:
        case 0x87: {
            const std::size_t count = opcode - 0x84U;
            const std::size_t floor = marks_.empty() ? 0 : marks_.back();
            if (stack_.size() - floor < count) fail("a tuple of values that are not there");
            push_items(Kind::tuple, stack_.size() - count);
            return true;
        }
        case 'a':
            top();
            extend(Kind::list, stack_.size() - 1);
            return true;
        case 'e':
            extend(Kind::list, pop_mark());
            return true;
        case 's':
            if (stack_.size() < 3) fail("a dict entry without key and value");
            extend(Kind::dict, stack_.size() - 2);
            return true;
        case 'u':
            extend(Kind::dict, pop_mark());
            return true;
        case 0x90:
            extend(Kind::other, pop_mark());
            return true;
        case '0':
            if (!marks_.empty() && marks_.back() == stack_.size()) {
                marks_.pop_back();
            } else {
                pop();
            }
            return true;
        case '1':
            stack_.resize(pop_mark());
            return true;
        case '2':
            push(top());
            return true;
        case 0x95:
            check_frame();
            return true;
        default:
            return false;
    }
}

}  // namespace gpuviz::formats
