import { formatDuration } from "../base/format.ts";
import { IDLE_CAUSES } from "../wire/codes.ts";
import type { IdleTimes } from "./idle_gaps.ts";

const CAUSE_TEXTS: Readonly<Record<(typeof IDLE_CAUSES)[number], string>> = {
  host: "the host had not launched it yet",
  dependency: "its stream waited for an event",
  synchronization: "the host was waiting for the GPU",
  allocation: "memory was being allocated or freed",
  unrecorded_event: "its stream waited for an event whose record is not in the recording",
  gpu_busy: "other streams kept the GPU busy",
  unknown: "no identified cause, such as the latency of a launch",
};

/** What an idle gap says of its main cause in the drawing. */
export const SHORT_CAUSES: typeof CAUSE_TEXTS = {
  host: "host late",
  dependency: "waits for a stream",
  synchronization: "host waits",
  allocation: "allocation",
  unrecorded_event: "waits for an event",
  gpu_busy: "GPU busy",
  unknown: "",
};

/** The causes of idle time, the largest part first. */
export function causesOf(causes: IdleTimes): (keyof IdleTimes)[] {
  return IDLE_CAUSES.filter((cause) => causes[cause] > 0).toSorted(
    (left, right) => causes[right] - causes[left],
  );
}

/** The causes of idle time in one line, the largest part first. */
export function idleText(causes: IdleTimes): string {
  return causesOf(causes)
    .map(
      (cause) => `${formatDuration(causes[cause])} ${SHORT_CAUSES[cause] || "no identified cause"}`,
    )
    .join(", ");
}

/** A line for each cause of idle time, the largest part first. */
export function idleLines(causes: IdleTimes, totalNs: number): string[] {
  return causesOf(causes).map((cause) => {
    const share = ((100 * causes[cause]) / Math.max(totalNs, 1)).toFixed(0);
    return `${cause.replace("_", " ")}: ${formatDuration(causes[cause])} (${share} %), ${CAUSE_TEXTS[cause]}`;
  });
}
