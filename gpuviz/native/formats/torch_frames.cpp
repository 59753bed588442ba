// The tables of a snapshot's call stacks.
#include <numeric>
#include <span>
#include <utility>

#include "formats/torch_tables.hpp"
#include "record/code_origin.hpp"

namespace gpuviz::formats {

namespace {

constexpr std::size_t most_digits = 9;

// The execution count of the notebook cell that a file name such as `In [7]` stands for; else 0.
std::int32_t cell_of(std::string_view filename) {
    constexpr std::string_view opening = "In [";
    if (!filename.starts_with(opening) || !filename.ends_with(']')) return 0;
    const std::string_view digits =
        filename.substr(opening.size(), filename.size() - opening.size() - 1);
    if (digits.empty() || digits.size() > most_digits) return 0;
    std::int32_t number = 0;
    for (const char digit : digits) {
        if (digit < '0' || digit > '9') return 0;
        number = 10 * number + (digit - '0');
    }
    return number;
}

// The texts that frames have, once each.
Coded<std::int32_t> coded(const TorchSnapshot& snapshot, const std::vector<std::uint32_t>& texts) {
    Coded<std::int32_t> column;
    std::vector<std::int32_t> codes(snapshot.texts.size() + 1, -1);
    column.codes.reserve(texts.size());
    for (const std::uint32_t text : texts) {
        if (codes[text] < 0) {
            codes[text] = static_cast<std::int32_t>(column.words.count());
            column.words.add(text == 0 ? std::string_view() : snapshot.texts[text - 1]);
        }
        column.codes.push_back(codes[text]);
    }
    return column;
}

Coded<std::int32_t> nothing(std::size_t rows) {
    return {std::vector<std::int32_t>(rows, 0), Texts(std::to_array<std::string_view>({""}))};
}

template <typename Value, typename Function>
std::vector<Value> of_files(const Coded<std::int32_t>& files, Function function) {
    std::vector<Value> of_words;
    for (std::size_t word = 0; word < files.words.count(); ++word) {
        of_words.push_back(static_cast<Value>(function(files.words.at(word))));
    }
    std::vector<Value> values;
    values.reserve(files.codes.size());
    for (const std::int32_t code : files.codes) {
        values.push_back(of_words[static_cast<std::size_t>(code)]);
    }
    return values;
}

std::vector<std::uint32_t> numbered(std::size_t rows) {
    std::vector<std::uint32_t> ids(rows);
    std::iota(ids.begin(), ids.end(), 1);
    return ids;
}

std::vector<std::uint32_t> user_frames(const TorchStacks& stacks,
                                       const std::vector<std::uint8_t>& origins) {
    const auto origin_of = [&](std::uint32_t frame) {
        return static_cast<record::CodeOrigin>(origins[frame - 1]);
    };
    std::vector<std::uint32_t> found;
    for (std::size_t stack = 0; stack + 1 < stacks.first.size(); ++stack) {
        const auto from = static_cast<std::size_t>(stacks.first[stack]);
        const auto count = static_cast<std::size_t>(stacks.first[stack + 1]) - from;
        const std::span frames(stacks.frames.data() + from, count);
        found.push_back(record::user_frame(frames, origin_of));
    }
    return found;
}

}  // namespace

void append_stack_tables(const TorchSnapshot& snapshot, std::vector<Table>& tables) {
    const TorchFrames& frames = snapshot.frames;
    const std::size_t rows = frames.line.size();
    Coded<std::int32_t> files = coded(snapshot, frames.filename);
    auto cells = of_files<std::int32_t>(files, cell_of);
    auto origins = of_files<std::uint8_t>(files, record::code_origin);
    Table stacks{"stacks", snapshot.stacks.first.size() - 1, {}};
    stacks.with("id", numbered(stacks.rows))
        .with("frames", Lists{snapshot.stacks.first, snapshot.stacks.frames})
        .with("user_frame", user_frames(snapshot.stacks, origins))
        .with("module", nothing(stacks.rows))
        .with_codes("phase", std::vector(stacks.rows, record::Phase::none), record::phase_names)
        .with_all("forward_frame", std::uint32_t{0})
        .with_all("differentiable", std::uint8_t{0});
    Table table{"frames", rows, {}};
    table.with("id", numbered(rows))
        .with("name", coded(snapshot, frames.name))
        .with("filename", std::move(files))
        .with("line", frames.line)
        .with("cell", std::move(cells))
        .with("source", nothing(rows))
        .with("installed", std::move(origins))
        .with("assigned", nothing(rows))
        .with("context", nothing(rows))
        .with_all("context_line", std::int32_t{0});
    tables.push_back(std::move(table));
    tables.push_back(std::move(stacks));
}

}  // namespace gpuviz::formats
