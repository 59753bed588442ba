import { IdleCauses, noIdleTimes, type IdleTimes } from "./idle_causes.ts";
import type { Lane } from "./lanes.ts";
import { SpanKind } from "./span_kinds.ts";
import { SpanRow } from "./span_row.ts";
import type { Work } from "./work.ts";

/** The source of a gap that no activity ended. */
export const NO_ACTIVITY = -1;

/** When the streams of a device had nothing to do, between its first and its last activity. */
export class IdleGaps {
  /** When none of the streams had anything to do. */
  readonly ofDevice: SpanRow;
  readonly #ofLane: ReadonlyMap<Lane, SpanRow>;
  readonly #work: Work;
  #causes: IdleCauses | undefined;

  constructor(lanes: readonly Lane[], work: Work) {
    this.#work = work;
    const streams = lanes.filter((lane) => lane.stream !== undefined);
    const all = streams.flatMap((lane) => lane.stack.rows);
    const fromNs = Math.min(...all.map(firstBegin));
    const toNs = Math.max(...all.map((row) => lastEnd(row)));
    this.ofDevice = gapsBetween(all, fromNs, toNs);
    this.#ofLane = new Map(
      streams.map((lane) => [lane, gapsBetween(lane.stack.rows, fromNs, toNs)]),
    );
  }

  /** The gaps of a stream's lane. */
  ofLane(lane: Lane): SpanRow | undefined {
    return this.#ofLane.get(lane);
  }

  /** Why there was a gap that ended with an activity. */
  causesOf(fromNs: number, toNs: number, activity: number): IdleTimes {
    const times = noIdleTimes();
    this.#causes ??= new IdleCauses(this.#work);
    this.#causes.add(fromNs, toNs, activity, times);
    return times;
  }

  /** Why there was nothing to do in a window, all gaps together. */
  causesIn(gaps: SpanRow, fromNs: number, toNs: number): IdleTimes {
    const times = noIdleTimes();
    this.#causes ??= new IdleCauses(this.#work);
    const [first, last] = gaps.range(fromNs, toNs);
    for (let gap = first; gap < last; gap += 1) {
      const from = Math.max(gaps.fromNs[gap] ?? 0, fromNs);
      const to = Math.min(gaps.toNs[gap] ?? 0, toNs);
      this.#causes.add(from, to, gaps.source[gap] ?? NO_ACTIVITY, times);
    }
    return times;
  }
}

function isWork(row: SpanRow, span: number): boolean {
  return row.kind[span] !== SpanKind.streamRange;
}

function firstBegin(row: SpanRow): number {
  const span = row.kind.findIndex((kind) => kind !== SpanKind.streamRange);
  return row.fromNs[span] ?? Infinity;
}

function lastEnd(row: SpanRow): number {
  const span = row.kind.findLastIndex((kind) => kind !== SpanKind.streamRange);
  return row.toNs[span] ?? -Infinity;
}

/** What no span of several rows covers; each gap's source is the activity that begins after it. */
function gapsBetween(rows: readonly SpanRow[], fromNs: number, toNs: number): SpanRow {
  const gaps = new SpanRow();
  const columns = rows.map((row) => ({ row, begins: row.fromNs, ends: row.toNs, next: 0 }));
  let reached = fromNs;
  for (;;) {
    let earliest: (typeof columns)[number] | undefined;
    for (const candidate of columns) {
      while (candidate.next < candidate.row.count && !isWork(candidate.row, candidate.next)) {
        candidate.next += 1;
      }
      const begin = candidate.begins[candidate.next] ?? Infinity;
      if (begin < (earliest?.begins[earliest.next] ?? Infinity)) {
        earliest = candidate;
      }
    }
    if (earliest === undefined) {
      break;
    }
    const { row, begins, ends, next } = earliest;
    const begin = begins[next] ?? 0;
    if (begin > reached) {
      gaps.push(reached, begin, SpanKind.idle, row.source[next] ?? NO_ACTIVITY);
    }
    reached = Math.max(reached, ends[next] ?? 0);
    earliest.next += 1;
  }
  if (toNs > reached) {
    gaps.push(reached, toNs, SpanKind.idle, NO_ACTIVITY);
  }
  return gaps;
}
