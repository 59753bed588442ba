import { countBelow } from "../base/search.ts";
import { NO_EVENT } from "./blocks.ts";
import type { DeviceContents } from "./device_contents.ts";
import { waitOf } from "./gpu_rows.ts";
import { NOTHING_HIGHLIGHTED, type Highlighted, type Selected } from "./selected.ts";
import { SpanKind, spanKindOfRange } from "./span_kinds.ts";

/** Rows of a table of a recording that show what a conclusion says. */
export interface Evidence {
  readonly table: string;
  /** Memory events are counted among the device's; for idle gaps, the activities that ended them. */
  readonly rows: readonly number[];
}

/** What lights up where evidence is shown. */
export function lightsOf({ table, rows }: Evidence, contents: DeviceContents): Highlighted {
  const { timeline, gpu } = contents;
  const spans = (selectedOf: (row: number) => Selected | undefined): Highlighted => {
    const found = rows.flatMap((row) => selectedOf(row) ?? []);
    return found.length === 0 ? NOTHING_HIGHLIGHTED : { ...NOTHING_HIGHLIGHTED, spans: found };
  };
  const span = (spanKind: number, row: number): Selected => ({ kind: "span", spanKind, row });
  if (rows.length === 0) {
    return NOTHING_HIGHLIGHTED;
  }
  switch (table) {
    case "memory_events": {
      const all = rows.map((row) => timeline.blocks.blockOf(row));
      const blocks = new Set(all.filter((block) => block !== NO_EVENT));
      return blocks.size === 0 ? NOTHING_HIGHLIGHTED : { ...NOTHING_HIGHLIGHTED, blocks };
    }
    case "activities":
      return { ...NOTHING_HIGHLIGHTED, activities: new Set(rows) };
    case "host_waits":
      return spans((row) => waitOf(gpu, row));
    case "api_calls":
      return spans((row) => span(SpanKind.call, row));
    case "ranges":
      return spans((row) => span(spanKindOfRange(gpu.ranges.kind[row] ?? 0), row));
    case "idle_gaps":
      return spans((row) => gapBefore(row, contents));
    default:
      return NOTHING_HIGHLIGHTED;
  }
}

/** The idle time of the device that an activity ended. */
function gapBefore(activity: number, { device, gpu }: DeviceContents): Selected | undefined {
  const gaps = gpu.idleGaps.of(device, 0)?.gaps;
  const endNs = gpu.activities.fromNs[activity];
  const at = gaps === undefined ? 0 : countBelow(gaps.toNs, endNs ?? Infinity);
  const fromNs = gaps?.fromNs[at];
  return fromNs === undefined || endNs === undefined || gaps?.toNs[at] !== endNs
    ? undefined
    : { kind: "gap", gap: { fromNs, toNs: endNs, next: activity, stream: undefined } };
}
