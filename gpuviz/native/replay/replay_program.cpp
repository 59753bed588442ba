#include "replay/replay_program.hpp"

#include <algorithm>
#include <stdexcept>

namespace gpuviz::replay {

namespace {

void require_length(const char* column, std::size_t length, std::size_t rows, bool optional) {
    if (length != rows && !(optional && length == 0)) {
        throw std::invalid_argument("The column '" + std::string(column) + "' has " +
                                    std::to_string(length) + " rows, but 'operation' has " +
                                    std::to_string(rows) + ".");
    }
}

[[noreturn]] void fail(std::size_t row, const std::string& text) {
    throw std::invalid_argument("Row " + std::to_string(row) + " of the program " + text + ".");
}

bool names_block(Operation operation) {
    return operation == Operation::malloc || operation == Operation::free ||
           operation == Operation::record_stream || operation == Operation::free_pending ||
           operation == Operation::restore_block;
}

bool restores_segment(Operation operation) {
    return operation == Operation::restore_segment || operation == Operation::restore_pages;
}

bool names_pool(Operation operation) {
    return operation == Operation::begin_pool || operation == Operation::end_pool ||
           operation == Operation::release_pool;
}

}  // namespace

void ReplayProgram::validate() const {
    require_length("id", id.size(), size(), false);
    require_length("argument", argument.size(), size(), false);
    require_length("stream", stream.size(), size(), false);
    require_length("stack", stack.size(), size(), true);
    require_length("thread", thread.size(), size(), true);
    require_length("time_ns", time_ns.size(), size(), true);
    require_length("origin", origin.size(), size(), true);
    if (!std::is_sorted(time_ns.begin(), time_ns.end())) {
        throw std::invalid_argument("The column 'time_ns' must ascend.");
    }
    std::vector<bool> allocated(block_count());
    for (std::size_t row = 0; row < size(); ++row) {
        if (operation[row] > static_cast<std::uint8_t>(last_operation)) {
            fail(row, "has the operation " + std::to_string(operation[row]) + "; the last one is " +
                          std::to_string(static_cast<int>(last_operation)));
        }
        const auto kind = static_cast<Operation>(operation[row]);
        if (kind == Operation::settings && argument[row] >= settings.size()) {
            fail(row, "names settings " + std::to_string(argument[row]) + " of " +
                          std::to_string(settings.size()));
        }
        if (kind == Operation::malloc || kind == Operation::restore_block) {
            if (allocated[id[row]]) {
                fail(row, "allocates block " + std::to_string(id[row]) + " again before its free");
            }
            allocated[id[row]] = true;
        } else if (names_block(kind)) {
            if (!allocated[id[row]]) {
                fail(row, "uses block " + std::to_string(id[row]) + ", which is not allocated");
            }
            allocated[id[row]] = kind == Operation::record_stream;
        }
    }
}

std::uint32_t ReplayProgram::block_count() const noexcept {
    std::uint32_t count = 0;
    for (std::size_t row = 0; row < size(); ++row) {
        if (names_block(static_cast<Operation>(operation[row]))) {
            count = std::max(count, id[row] + 1);
        }
    }
    return count;
}

std::uint64_t ReplayProgram::pool_count() const noexcept {
    std::uint64_t count = 0;
    for (std::size_t row = 0; row < size(); ++row) {
        if (names_pool(static_cast<Operation>(operation[row]))) {
            count = std::max(count, argument[row] + 1);
        } else if (restores_segment(static_cast<Operation>(operation[row]))) {
            count = std::max<std::uint64_t>(count, id[row] / 2);
        }
    }
    return count;
}

}  // namespace gpuviz::replay
