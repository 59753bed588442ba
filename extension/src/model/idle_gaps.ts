import { countBelow } from "../base/search.ts";
import type { ArrowTable } from "../wire/arrow.ts";
import { IDLE_CAUSES } from "../wire/codes.ts";
import { SpanKind } from "./span_kinds.ts";
import { SpanRow } from "./span_row.ts";

/** The source of a gap that no activity ended. */
export const NO_ACTIVITY = -1;

/** Why nothing ran, in ns. */
export type IdleTimes = Record<(typeof IDLE_CAUSES)[number], number>;

/** When a stream or a device had nothing to do, between the device's first and last activity. */
export class IdleLane {
  /** Each gap's source is the activity that ended it, or NO_ACTIVITY. */
  readonly gaps = new SpanRow();
  /** The parts of gaps that have one cause each: its place in `IDLE_CAUSES` is their kind. */
  readonly #parts = new SpanRow();

  /** Adds a part that begins when or after the last one ends; a gap's parts touch each other. */
  push(fromNs: number, toNs: number, cause: number, activity: number): void {
    const { gaps } = this;
    const last = gaps.count - 1;
    const isSame = gaps.toNs[last] === fromNs && gaps.source[last] === activity;
    const gapFromNs = isSame ? (gaps.fromNs[last] ?? fromNs) : fromNs;
    gaps.truncate(isSame ? last : last + 1);
    gaps.push(gapFromNs, toNs, SpanKind.idle, activity);
    this.#parts.push(fromNs, toNs, cause, activity);
  }

  /** Drops the parts that begin at a time or later. */
  forgetFrom(timeNs: number): void {
    const { gaps } = this;
    this.#parts.truncate(countBelow(this.#parts.fromNs, timeNs));
    gaps.truncate(countBelow(gaps.fromNs, timeNs));
    const last = gaps.count - 1;
    const [from, source] = [gaps.fromNs[last], gaps.source[last]];
    if (from !== undefined && source !== undefined && gaps.endNs > this.#parts.endNs) {
      gaps.truncate(last);
      gaps.push(from, this.#parts.endNs, SpanKind.idle, source);
    }
  }

  /** Why there was nothing to do in a window, all gaps together. */
  causesIn(fromNs: number, toNs: number): IdleTimes {
    const times = Object.fromEntries(IDLE_CAUSES.map((cause) => [cause, 0])) as IdleTimes;
    const parts = this.#parts;
    const [first, last] = parts.range(fromNs, toNs);
    for (let part = first; part < last; part += 1) {
      const from = Math.max(parts.fromNs[part] ?? 0, fromNs);
      const to = Math.min(parts.toNs[part] ?? 0, toNs);
      times[IDLE_CAUSES[parts.kind[part] ?? 0] ?? "unknown"] += to - from;
    }
    return times;
  }
}

/** The idle gaps of each device and of each of its streams, as `derived.py` classified them. */
export class IdleGaps {
  readonly #lanes = new Map<number, Map<number, IdleLane>>();
  /** What the last row of a file ended with: its rows have differences, see `derived.py`. */
  #last = { endNs: 0, activity: 0 };

  append(table: ArrowTable): void {
    for (const lane of table.replaceFromNs === undefined ? [] : this.#all()) {
      lane.forgetFrom(table.replaceFromNs ?? 0);
    }
    const isOfFile = table.has("length");
    const names = isOfFile ? ["pause", "length", "step"] : ["time", "end", "activity"];
    const [times, ends, activities] = names.map((name) => table.numbers(name));
    const streams = table.numbers("stream");
    const causes = table.codes("cause", IDLE_CAUSES);
    const devices = table.numbers("device");
    let lane = new IdleLane();
    for (let row = 0; row < table.rows; row += 1) {
      if (row === 0 || devices[row] !== devices[row - 1] || streams[row] !== streams[row - 1]) {
        lane = this.#laneOf(devices[row] ?? 0, streams[row] ?? 0);
      }
      const fromNs = (isOfFile ? this.#last.endNs : 0) + (times?.[row] ?? 0);
      const endNs = (isOfFile ? fromNs : 0) + (ends?.[row] ?? 0);
      const activity = (isOfFile ? this.#last.activity : 0) + (activities?.[row] ?? NO_ACTIVITY);
      lane.push(fromNs, endNs, causes[row] ?? 0, activity);
      this.#last = { endNs, activity };
    }
  }

  #laneOf(device: number, stream: number): IdleLane {
    const lanes = this.#lanes.get(device) ?? new Map<number, IdleLane>();
    this.#lanes.set(device, lanes);
    const lane = lanes.get(stream) ?? new IdleLane();
    lanes.set(stream, lane);
    return lane;
  }

  /** The gaps of a stream, or of the whole device where that is 0; its only stream has the same. */
  of(device: number, stream: number): IdleLane | undefined {
    const lanes = this.#lanes.get(device);
    return lanes?.get(stream) ?? (lanes?.size === 1 ? lanes.get(0) : undefined);
  }

  #all(): IdleLane[] {
    return [...this.#lanes.values()].flatMap((lanes) => [...lanes.values()]);
  }
}
