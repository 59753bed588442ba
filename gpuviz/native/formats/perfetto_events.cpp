#include "formats/perfetto_events.hpp"

#include <cstddef>
#include <string>

#include "formats/protobuf.hpp"
#include "formats/trace_order.hpp"

namespace gpuviz::formats {

namespace {

// Field numbers and values from protos/perfetto/trace of Perfetto 0.59.
namespace trace_field {
constexpr std::uint32_t packet = 1;
}
namespace packet_field {
constexpr std::uint32_t timestamp = 8;
constexpr std::uint32_t trusted_packet_sequence_id = 10;
constexpr std::uint32_t track_event = 11;
constexpr std::uint32_t sequence_flags = 13;
}  // namespace packet_field
namespace event_field {
constexpr std::uint32_t category_iids = 3;
constexpr std::uint32_t debug_annotations = 4;
constexpr std::uint32_t type = 9;
constexpr std::uint32_t name_iid = 10;
constexpr std::uint32_t track_uuid = 11;
constexpr std::uint32_t counter_value = 30;
constexpr std::uint32_t flow_ids = 47;
constexpr std::uint32_t terminating_flow_ids = 48;
}  // namespace event_field
namespace annotation_field {
constexpr std::uint32_t name_iid = 1;
constexpr std::uint32_t int_value = 4;
constexpr std::uint32_t string_value_iid = 17;
}  // namespace annotation_field
constexpr std::uint64_t needs_incremental_state = 2;
enum EventType : std::uint64_t { slice_begin = 1, slice_end = 2, instant = 3, counter = 4 };

class PacketWriter {
  public:
    PacketWriter(PerfettoSequence sequence, const TraceSink& sink)
        : sequence_(sequence), sink_(sink) {}

    // Appends the packet of an event whose other fields are in `event`.
    void write(std::int64_t time, EventType type, std::uint32_t track) {
        ProtobufFields fields(event);
        fields.number(event_field::type, type);
        fields.number(event_field::track_uuid, std::uint64_t{track} + 1);
        packet_.clear();
        ProtobufFields packet(packet_);
        packet.number(packet_field::timestamp,
                      static_cast<std::uint64_t>(time + sequence_.zero_ns));
        packet.number(packet_field::trusted_packet_sequence_id, sequence_.id);
        packet.number(packet_field::sequence_flags, needs_incremental_state);
        packet.bytes(packet_field::track_event, event);
        event.clear();
        ProtobufFields(piece_).bytes(trace_field::packet, packet_);
        if (piece_.size() >= trace_piece_bytes) flush();
    }

    void flush() {
        sink_(piece_);
        piece_.clear();
    }

    std::string event;

  private:
    PerfettoSequence sequence_;
    const TraceSink& sink_;
    std::string packet_;
    std::string piece_;
};

void append_arguments(const TraceRows& table, std::size_t row, std::string& event,
                      std::string& annotation) {
    for (const TraceArgument& argument : table.arguments) {
        const std::int64_t value = argument.values[row];
        if (value < 0) continue;
        annotation.clear();
        ProtobufFields fields(annotation);
        fields.number(annotation_field::name_iid, std::uint64_t{argument.name} + 1);
        if (argument.is_text) {
            fields.number(annotation_field::string_value_iid,
                          static_cast<std::uint64_t>(value) + 1);
        } else {
            fields.number(annotation_field::int_value, static_cast<std::uint64_t>(value));
        }
        ProtobufFields(event).bytes(event_field::debug_annotations, annotation);
    }
}

void append_flows(const TraceRows& table, std::size_t row, std::string& event) {
    ProtobufFields fields(event);
    if (!table.flow.empty() && table.flow[row] != 0) {
        fields.fixed64(event_field::terminating_flow_ids, table.flow[row]);
    }
    if (table.flow_count.empty()) return;
    for (std::uint32_t number = 0; number < table.flow_count[row]; ++number) {
        fields.fixed64(event_field::flow_ids, table.first_flow[row] + number);
    }
}

}  // namespace

void write_perfetto_rows(std::span<const TraceRows> tables, PerfettoSequence sequence,
                         const TraceSink& sink) {
    PacketWriter packets(sequence, sink);
    std::string annotation;
    for (const TraceStep& step : trace_steps(tables)) {
        const TraceRows& table = tables[step.table];
        if (step.is_end) {
            packets.write(table.end[step.row], slice_end, table.track[step.row]);
            continue;
        }
        ProtobufFields fields(packets.event);
        fields.number(event_field::category_iids, std::uint64_t{table.category} + 1);
        fields.number(event_field::name_iid, std::uint64_t{table.name[step.row]} + 1);
        append_arguments(table, step.row, packets.event, annotation);
        append_flows(table, step.row, packets.event);
        packets.write(table.time[step.row], table.instant ? instant : slice_begin,
                      table.track[step.row]);
    }
    packets.flush();
}

void write_perfetto_counter(const TraceCounter& counter_rows, PerfettoSequence sequence,
                            const TraceSink& sink) {
    PacketWriter packets(sequence, sink);
    for (std::size_t row = 0; row < counter_rows.time.size(); ++row) {
        ProtobufFields(packets.event)
            .number(event_field::counter_value,
                    static_cast<std::uint64_t>(counter_rows.value[row]));
        packets.write(counter_rows.time[row], counter, counter_rows.track);
    }
    packets.flush();
}

}  // namespace gpuviz::formats
