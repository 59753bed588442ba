#include "formats/torch_snapshot.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <system_error>

#include "bindings/bindings.hpp"
#include "bindings/columns.hpp"
#include "formats/format_error.hpp"
#include "formats/torch_history.hpp"
#include "python/gil.hpp"
#include "state/device_memory.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace gpuviz::bindings {

using formats::TorchAnnotation;
using formats::TorchRow;
using formats::TorchSnapshot;

namespace {

using Columns = nb::typed<nb::dict, nb::str, nb::any>;
using Clock = std::chrono::steady_clock;

constexpr auto between_reports = std::chrono::milliseconds(50);

// Reports at most 20 times a second, and lets an interrupt through.
formats::ByteProgress reporting(const nb::object& progress) {
    return [&progress, last = Clock::now() - between_reports](std::uint64_t done,
                                                              std::uint64_t total) mutable {
        if (Clock::now() - last < between_reports) return;
        last = Clock::now();
        const python::GilAcquire locked;
        if (PyErr_CheckSignals() != 0) throw nb::python_error();
        if (!progress.is_none()) progress(done, total);
    };
}

template <typename Enum>
nb::object codes_to_numpy(const std::vector<Enum>& values) {
    std::vector<std::int8_t> codes(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) codes[i] = static_cast<std::int8_t>(values[i]);
    return to_numpy(std::move(codes));
}

// Hands the columns over; they are empty afterwards.
Columns take_events(TorchSnapshot& snapshot) {
    formats::TorchEvents& events = snapshot.events;
    Columns columns;
    columns["action"] = codes_to_numpy(events.action);
    columns["device"] = to_numpy(std::move(events.device));
    columns["address"] = to_numpy(std::move(events.address));
    columns["requested_size"] = to_numpy(std::move(events.size));
    columns["stream"] = to_numpy(std::move(events.stream));
    columns["time_us"] = to_numpy(std::move(events.time_us));
    columns["stack"] = to_numpy(std::move(events.stack));
    columns["metadata"] = to_numpy(std::move(events.metadata));
    events = {};
    return columns;
}

Columns rows_dict(const std::vector<TorchRow>& rows) {
    const auto column = [&](auto field) {
        std::vector<std::decay_t<decltype(field(rows.front()))>> values;
        values.reserve(rows.size());
        for (const TorchRow& row : rows) values.push_back(field(row));
        return to_numpy(std::move(values));
    };
    Columns columns;
    columns["action"] =
        column([](const TorchRow& r) { return static_cast<std::int8_t>(r.action); });
    columns["device"] = column([](const TorchRow& r) { return r.device; });
    columns["address"] = column([](const TorchRow& r) { return r.address; });
    columns["size"] = column([](const TorchRow& r) { return r.size; });
    columns["requested_size"] = column([](const TorchRow& r) { return r.requested_size; });
    columns["stream"] = column([](const TorchRow& r) { return r.stream; });
    columns["pool"] = column([](const TorchRow& r) { return r.pool; });
    columns["stack"] = column([](const TorchRow& r) { return r.stack; });
    return columns;
}

Columns history_dict(const TorchSnapshot& snapshot, std::optional<std::uint64_t> max_split_size,
                     const allocator::RoundupDivisions& divisions) {
    formats::TorchRounding rounding;
    rounding.max_split_size = max_split_size.value_or(rounding.max_split_size);
    rounding.divisions = divisions;
    formats::TorchHistory history;
    {
        const python::GilRelease unlocked;
        history = formats::torch_history(snapshot, rounding);
    }
    Columns columns;
    columns["size"] = to_numpy(std::move(history.size));
    columns["pool"] = to_numpy(std::move(history.pool));
    columns["before"] = rows_dict(history.before);
    columns["after"] = rows_dict(history.after);
    columns["owners"] = to_numpy(std::move(history.owners));
    columns["contradictions"] = history.contradictions;
    return columns;
}

nb::typed<nb::list, nb::bytes> texts_list(const TorchSnapshot& snapshot) {
    nb::typed<nb::list, nb::bytes> texts;
    for (const std::string& text : snapshot.texts)
        texts.append(nb::bytes(text.data(), text.size()));
    return texts;
}

Columns annotations_dict(const TorchSnapshot& snapshot) {
    const auto column = [&](auto field) {
        std::vector<std::decay_t<decltype(field(snapshot.annotations.front()))>> values;
        for (const TorchAnnotation& row : snapshot.annotations) values.push_back(field(row));
        return to_numpy(std::move(values));
    };
    Columns columns;
    columns["name"] = column([](const TorchAnnotation& a) { return a.name; });
    columns["is_start"] =
        column([](const TorchAnnotation& a) { return static_cast<std::uint8_t>(a.is_start); });
    columns["device"] = column([](const TorchAnnotation& a) { return a.device; });
    columns["time_us"] = column([](const TorchAnnotation& a) { return a.time_us; });
    return columns;
}

nb::typed<nb::dict, nb::bytes, nb::bytes> json_dict(
    const std::vector<std::pair<std::string, std::string>>& entries) {
    nb::typed<nb::dict, nb::bytes, nb::bytes> values;
    for (const auto& [key, json] : entries) {
        values[nb::bytes(key.data(), key.size())] = nb::bytes(json.data(), json.size());
    }
    return values;
}

// Free blocks and the requested sizes of their last allocations, which no event contains.
Columns stale_requests(const TorchSnapshot& snapshot) {
    const formats::TorchBlocks& blocks = snapshot.blocks;
    std::vector<std::int64_t> device;
    std::vector<std::uint64_t> address;
    std::vector<std::int64_t> size;
    std::vector<std::int64_t> requested_size;
    for (std::size_t row = 0; row < blocks.count(); ++row) {
        const bool is_free =
            blocks.state[row] == static_cast<std::uint8_t>(state::BlockState::inactive);
        if (!is_free || blocks.requested_size[row] == 0) continue;
        device.push_back(snapshot.segments.device[blocks.segment[row]]);
        address.push_back(blocks.address[row]);
        size.push_back(blocks.size[row]);
        requested_size.push_back(blocks.requested_size[row]);
    }
    Columns columns;
    columns["device"] = to_numpy(std::move(device));
    columns["address"] = to_numpy(std::move(address));
    columns["size"] = to_numpy(std::move(size));
    columns["requested_size"] = to_numpy(std::move(requested_size));
    return columns;
}

TorchSnapshot read_snapshot(const std::string& path, std::uint64_t memory_limit,
                            const nb::object& progress) {
    try {
        const python::GilRelease unlocked;
        return formats::read_torch_snapshot(path, memory_limit, reporting(progress));
    } catch (const formats::FormatError& error) {
        const nb::tuple parts = nb::make_tuple(error.place(), std::string(error.what()));
        PyErr_SetObject(PyExc_ValueError, parts.ptr());
        throw nb::python_error();
    } catch (const std::system_error& error) {
        errno = error.code().value();
        PyErr_SetFromErrnoWithFilename(PyExc_OSError, path.c_str());
        throw nb::python_error();
    }
}

}  // namespace

void bind_torch_snapshot(nb::module_& m) {
    nb::class_<TorchSnapshot>(m, "TorchSnapshot",
                              "The contents of a file of torch.cuda.memory._snapshot(). Texts, "
                              "stacks, frames and pools have ids from 1; 0 is none.")
        .def_static("read", &read_snapshot, "path"_a, "memory_limit"_a,
                    "progress"_a.none() = nb::none(),
                    "Read a file; nothing in it is executed. `progress` gets bytes done and in "
                    "all. Raises ValueError(place, problem).")
        .def("history", &history_dict, "max_split_size"_a.none(), "divisions"_a,
             "Return the `size` and `pool` of each event, the rows `before` and `after` them, the "
             "`owners` of the pools, and the number of `contradictions`.")
        .def("take_events", &take_events, "Return the trace as columns, and clear it.")
        .def_prop_ro("stale_requests", &stale_requests,
                     "Free blocks with the requested sizes of their last allocations.")
        .def_prop_ro("texts", &texts_list)
        .def_prop_ro("annotations", &annotations_dict)
        .def_prop_ro("settings", [](const TorchSnapshot& self) { return json_dict(self.settings); })
        .def_prop_ro("recorder", [](const TorchSnapshot& self) { return json_dict(self.recorder); })
        .def_prop_ro("left_out", [](const TorchSnapshot& self) { return self.left_out; })
        .def_prop_ro("pools", [](const TorchSnapshot& self) { return self.pools; })
        .def_prop_ro("stack_offsets",
                     [](const TorchSnapshot& self) { return to_numpy(self.stacks.first); })
        .def_prop_ro("stack_frames",
                     [](const TorchSnapshot& self) { return to_numpy(self.stacks.frames); })
        .def_prop_ro("frame_names",
                     [](const TorchSnapshot& self) { return to_numpy(self.frames.name); })
        .def_prop_ro("frame_files",
                     [](const TorchSnapshot& self) { return to_numpy(self.frames.filename); })
        .def_prop_ro("frame_lines",
                     [](const TorchSnapshot& self) { return to_numpy(self.frames.line); });
}

}  // namespace gpuviz::bindings
