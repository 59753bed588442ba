import { Action, ACTIONS } from "../model/events.ts";
import type { CodedTexts } from "../wire/column_table.ts";
import type { AddedEvent, TorchHistory } from "./torch_history.ts";
import type { TorchRanges } from "./torch_ranges.ts";
import type { TorchTimes } from "./torch_times.ts";

type Floats = Float64Array<ArrayBuffer>;

/** The columns of `memory_events`, but raw handles of streams instead of their ids. */
export interface EventColumns {
  readonly time: Floats;
  readonly action: CodedTexts;
  readonly address: Floats;
  readonly size: Floats;
  readonly requested_size: Floats;
  readonly device: Floats;
  readonly stream: Floats;
  readonly pool: Floats;
  readonly stack: Floats;
  readonly range: Floats;
}

/** What existed before, what happened, and what leads to the snapshot's end. */
export function eventColumns(
  history: TorchHistory,
  times: TorchTimes,
  ranges: TorchRanges,
): EventColumns {
  const { before, after, trace } = history;
  const { events } = trace;
  const column = (values: ArrayLike<number>, added: (event: AddedEvent) => number): Floats => {
    const whole = new Float64Array(before.length + values.length + after.length);
    before.forEach((event, row) => (whole[row] = added(event)));
    whole.set(values, before.length);
    const first = before.length + values.length;
    after.forEach((event, row) => (whole[first + row] = added(event)));
    return whole;
  };
  const time = column(times.events, () => times.endNs).fill(0, 0, before.length);
  const action = Uint8Array.from(column(events.action.view(), (event) => event.action));
  const requested = column(events.size.view(), (event) => event.requestedSize);
  const size = column(trace.size, (event) => event.size);
  for (const [row, code] of action.entries()) {
    if (code >= Action.segmentAlloc && code <= Action.segmentUnmap) {
      requested[row] = 0;
    }
    size[row] = Math.max(size[row] ?? 0, requested[row] ?? 0);
  }
  return {
    time,
    action: { texts: ACTIONS, codes: action },
    address: column(events.address.view(), (event) => event.address),
    size,
    requested_size: requested,
    device: column(events.device.view(), (event) => event.device),
    stream: column(events.stream.view(), (event) => event.stream),
    pool: column(trace.pool, (event) => event.pool),
    stack: column(events.stack.view(), (event) => event.stack),
    range: column(ranges.ofEvent, () => 0),
  };
}
