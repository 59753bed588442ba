import { Action } from "../model/events.ts";
import type { TorchHistory } from "./torch_history.ts";
import type { TorchSnapshot } from "./torch_snapshot.ts";
import type { TorchTimes } from "./torch_times.ts";

const MOST_LEFT_OUT = 20;

/** What a reader of a snapshot should know of how it was read; the same as Python's importer says. */
export function* notesOf(
  snapshot: TorchSnapshot,
  history: TorchHistory,
  times: TorchTimes,
): Generator<string> {
  if (snapshot.events.count === 0) {
    yield "The torch snapshot has no trace, only the state of memory when it was taken.";
  } else if (history.before.length > 0) {
    const blocks = history.before.filter(({ action }) => action === Action.alloc).length;
    const pending = history.before.filter(({ action }) => action === Action.freeRequested).length;
    const segments = history.before.length - blocks - pending;
    yield "The torch snapshot's trace begins in the middle: what existed before " +
      `(segments: ${segments}, blocks: ${blocks}) was worked out from what came after; ` +
      "when and where it was made is not known.";
  }
  if (times.areMissing) {
    yield "The torch snapshot has no times: its events are shown 1 µs apart, in their order.";
  }
  if (times.moved > 0) {
    yield `${times.moved} events were earlier than their predecessors and were moved.`;
  }
  if (history.contradictions > 0) {
    yield `${history.contradictions} events of the torch snapshot contradict others: its ` +
      "trace seems to lack events.";
  }
  if (history.after.length > 0) {
    yield "The torch snapshot's trace does not lead to its segments: " +
      `${history.after.length} events were added at its end that lead there.`;
  }
  for (const [what, count] of leftOut(snapshot)) {
    yield `${count} ${what} in the torch snapshot are left out.`;
  }
}

function leftOut({ events, segments }: TorchSnapshot): [string, number][] {
  const known = [...events.leftOut].slice(0, MOST_LEFT_OUT);
  if (segments.hostCount > 0) {
    known.push(["segments of host memory", segments.hostCount]);
  }
  return known.sort(([left], [right]) => (left < right ? -1 : 1));
}
