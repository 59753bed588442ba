#include "formats/torch_snapshot.hpp"

#include "formats/format_error.hpp"
#include "formats/pickle_reader.hpp"
#include "formats/torch_snapshot_reader.hpp"
#include "formats/utf8.hpp"

namespace gpuviz::formats {

namespace {

using Kind = PickleValue::Kind;

}  // namespace

void TorchEvents::reserve(std::size_t count) {
    action.reserve(count);
    device.reserve(count);
    address.reserve(count);
    size.reserve(count);
    block_size.reserve(count);
    stream.reserve(count);
    time_us.reserve(count);
    pool.reserve(count);
    kind.reserve(count);
    stack.reserve(count);
    metadata.reserve(count);
}

TorchSnapshot TorchSnapshotReader::read(PickleValue root) {
    if (root.kind() == Kind::list) {
        // torch.cuda.memory_snapshot() returns only the list of segments.
        read_segments(root);
    } else {
        if (root.kind() != Kind::dict) {
            throw FormatError("", "no memory snapshot; expected a dict with \"segments\"");
        }
        bool has_segments = false;
        const auto items = root.items()->items();
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            const PickleValue value = items[i + 1];
            const Key key = key_of(items[i]);
            has_segments = has_segments || key == Key::segments;
            if (value.kind() == Kind::none) continue;
            switch (key) {
                case Key::segments:
                    read_segments(value);
                    break;
                case Key::device_traces:
                    read_traces(value);
                    break;
                case Key::allocator_settings:
                    snapshot_.settings = torch_settings(value);
                    break;
                case Key::gpuviz:
                    snapshot_.recorder = torch_recorder(value);
                    break;
                case Key::external_annotations:
                    read_annotations(value);
                    break;
                case Key::host_segments:
                    leave_out("segments of host memory", list_of(value, {}, "").count);
                    break;
                default:
                    break;
            }
        }
        if (!has_segments) {
            throw FormatError("", "no memory snapshot; expected a dict with \"segments\"");
        }
    }
    for (const PickleText* text : texts_->all()) {
        snapshot_.texts.push_back(valid_utf8(text->view()));
    }
    snapshot_.left_out.assign(left_out_.begin(), left_out_.end());
    return std::move(snapshot_);
}

void TorchSnapshotReader::count_rows(std::uint64_t added, std::string_view list) {
    rows_ += added;
    if (rows_ > most_rows_) {
        throw FormatError(std::string(list),
                          "more rows than the file has bytes; each row of a "
                          "snapshot is written once");
    }
}

void TorchSnapshotReader::leave_out(const std::string& what, std::int64_t count) {
    if (count == 0) return;
    if (left_out_.size() < 20 || left_out_.contains(what)) left_out_[what] += count;
}

void TorchSnapshotReader::read_annotations(PickleValue annotations) {
    Place place{"external_annotations"};
    const PickleItems& list = list_of(annotations, place, "");
    count_rows(list.count, place.list);
    for (const PickleValue each : list.items()) {
        ++place.position;
        TorchAnnotation annotation{};
        std::uint32_t stage = 0;
        const auto items = dict_of(each, place, "").items();
        for (std::size_t i = 0; i + 1 < items.size(); i += 2) {
            const PickleValue value = items[i + 1];
            switch (key_of(items[i])) {
                case Key::name:
                    annotation.name = text_of(value, place, "name");
                    break;
                case Key::stage:
                    stage = text_of(value, place, "stage");
                    break;
                case Key::device:
                    annotation.device = static_cast<std::int16_t>(
                        value.kind() == Kind::integer ? value.integer() : 0);
                    break;
                case Key::time_us:
                    annotation.time_us = size_of(value, place, "time_us");
                    break;
                default:
                    break;
            }
        }
        if (annotation.name == 0 || stage == 0) continue;
        annotation.is_start = texts_->all()[stage - 1]->view() == "START";
        snapshot_.annotations.push_back(annotation);
    }
}

TorchSnapshot read_torch_snapshot(ByteSource source, std::uint64_t memory_limit) {
    PickleArena arena(memory_limit);
    PickleTexts texts(arena);
    intern_keys(texts);
    const std::uint64_t size = source.size();
    PickleValue root;
    {
        // Its bytes may be in memory, which is free afterwards.
        ByteSource whole = std::move(source);
        root = PickleReader(whole, arena, texts).read();
    }
    return TorchSnapshotReader(texts, size).read(root);
}

}  // namespace gpuviz::formats
