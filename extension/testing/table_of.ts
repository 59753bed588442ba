import {
  columnFromArray,
  dictionary,
  float64,
  list,
  tableFromColumns,
  tableToIPC,
  uint32,
  utf8,
  type DataType,
} from "@uwdata/flechette";

import { ArrowTable } from "../src/wire/arrow.ts";

const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  activities:
    "time end kind name device stream correlation bytes copy_kind source destination graph launch".split(
      " ",
    ),
  api_calls: "time end name thread correlation stack".split(" "),
  host_waits:
    "time end kind name call synchronization thread stack device stream waiting_ns transfer_ns".split(
      " ",
    ),
  idle_gaps: "device stream time end cause activity".split(" "),
  host_work: ["device", "time", "end", "activity", "stack", "text"],
  "stored idle_gaps": "device stream pause length cause step".split(" "),
  stream_waits: "recorded_stream recorded_time waiting_stream resumed_time".split(" "),
  stacks: ["id"],
  launch_blocks: ["correlation", "block", "mode"],
  accessed_blocks: ["device", "event"],
  memory_marks: ["device", "event", "kind", "bytes"],
  ranges: "id time end name kind thread parent".split(" "),
  phases: "id time end name kind thread parent".split(" "),
  host_memory_events: "time action address size requested_size stack".split(" "),
  memory_events: "time action address size requested_size device stream pool stack framework".split(
    " ",
  ),
  strings: ["id", "text"],
  memory_operations: [
    "time",
    "operation",
    "memory",
    "address",
    "bytes",
    "device",
    "correlation",
    "source",
  ],
  threads: ["id", "name"],
  processes: ["id", "name", "devices", "ordinals", "threads"],
};
const TEXTS = new Set(["copy_kind", "source", "destination", "mode", "framework"]);

type Value = number | string | null | readonly number[];

function typeOf(value: Value | undefined): DataType {
  if (Array.isArray(value)) {
    return list(uint32());
  }
  return typeof value === "string" ? dictionary(utf8()) : float64();
}

/** A table in the form of a recording's; missing columns are 0 or empty texts. */
export function tableOf(
  name: string,
  columns: Readonly<Record<string, readonly Value[]>>,
  replaceFromNs?: number,
): ArrowTable {
  const rows = Math.max(0, ...Object.values(columns).map((values) => values.length));
  const names = new Set([...(COLUMNS[name] ?? []), ...Object.keys(columns)]);
  const whole = [...names].map((column) => {
    const isText = TEXTS.has(column);
    const values = columns[column] ?? Array.from({ length: rows }, () => (isText ? "" : 0));
    const type = typeOf(values[0]);
    return [column, columnFromArray([...values], type)] as const;
  });
  const stream = tableToIPC(tableFromColumns(Object.fromEntries(whole)), { format: "stream" });
  if (stream === null) {
    throw new Error(`The table ${name} could not be written.`);
  }
  return new ArrowTable(name, new Uint8Array(stream), replaceFromNs);
}
