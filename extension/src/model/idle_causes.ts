import { IntervalUnion } from "../base/interval_union.ts";
import { countBelow } from "../base/search.ts";
import { ActivityKind } from "./activities.ts";
import { CallKind, callKinds } from "./call_kinds.ts";
import { SynchronizationKind } from "./synchronizations.ts";
import type { Work } from "./work.ts";

export const IDLE_CAUSES = [
  "host",
  "dependency",
  "synchronization",
  "allocation",
  "unknown",
] as const;

/** Why nothing ran, in ns. */
export type IdleTimes = Record<(typeof IDLE_CAUSES)[number], number>;

export function noIdleTimes(): IdleTimes {
  return { host: 0, dependency: 0, synchronization: 0, allocation: 0, unknown: 0 };
}

/** Why a stream or a device had nothing to do, as gpuviz/analysis/overlap.py defines it. */
export class IdleCauses {
  readonly #work: Work;
  readonly #callKinds: Uint8Array<ArrayBuffer>;
  readonly #allocations: IntervalUnion;
  /** By thread: when it was blocked, or any thread allocated. */
  readonly #blocked: ReadonlyMap<number, IntervalUnion>;
  /** By stream: when that completed which it was told to wait for. */
  readonly #completions: ReadonlyMap<number, LatestBefore>;

  constructor(work: Work) {
    this.#work = work;
    this.#callKinds = callKinds(work);
    const allocating = this.#callsOf((kind) => kind === CallKind.allocation);
    this.#allocations = new IntervalUnion(allocating.map(([, at]) => at));
    this.#blocked = this.#blockedThreads();
    this.#completions = this.#findCompletions();
  }

  /** Adds the causes of a gap that ended with an activity, -1 if with none. */
  add(fromNs: number, toNs: number, activity: number, times: IdleTimes): void {
    const { activities, apiCalls } = this.#work;
    const correlation = activities.correlation[activity] ?? 0;
    const call = activity < 0 ? undefined : this.#callOf(correlation);
    if (call === undefined) {
      const allocation = this.#allocations.covered(fromNs, toNs);
      times.allocation += allocation;
      times.unknown += toNs - fromNs - allocation;
      return;
    }
    const completed = this.#completions.get(activities.stream[activity] ?? 0)?.before(correlation);
    const from = Math.max(fromNs, apiCalls.fromNs[call] ?? 0);
    const to = Math.min(toNs, completed ?? -Infinity);
    const [begin, end] = to > from ? [from, to] : [toNs, toNs];
    times.dependency += end - begin;
    this.#addPart(fromNs, begin, call, times);
    this.#addPart(end, toNs, call, times);
  }

  #addPart(fromNs: number, toNs: number, call: number, times: IdleTimes): void {
    if (toNs <= fromNs) {
      return;
    }
    const { apiCalls } = this.#work;
    const begun = Math.min(toNs, apiCalls.fromNs[call] ?? 0);
    const returned = Math.min(toNs, Math.max(apiCalls.toNs[call] ?? 0, apiCalls.fromNs[call] ?? 0));
    const allocations = this.#allocations;
    const allocation = allocations.covered(fromNs, toNs);
    const blocked = this.#blocked.get(apiCalls.thread[call] ?? 0);
    const synchronization =
      blocked === undefined
        ? 0
        : blocked.covered(fromNs, begun) - allocations.covered(fromNs, begun);
    const host =
      Math.max(returned - fromNs, 0) - allocations.covered(fromNs, returned) - synchronization;
    times.allocation += allocation;
    times.synchronization += synchronization;
    times.host += host;
    times.unknown += toNs - fromNs - allocation - synchronization - host;
  }

  #callOf(correlation: number): number | undefined {
    return this.#work.apiCalls.byCorrelation.all(correlation)[0];
  }

  #callsOf(
    isMeant: (kind: number) => boolean,
  ): (readonly [call: number, times: readonly [number, number]])[] {
    const { fromNs, toNs } = this.#work.apiCalls;
    return [...this.#callKinds.keys()]
      .filter((call) => isMeant(this.#callKinds[call] ?? 0))
      .map((call) => [call, [fromNs[call] ?? 0, toNs[call] ?? 0]] as const);
  }

  #blockedThreads(): Map<number, IntervalUnion> {
    const { apiCalls, synchronizations } = this.#work;
    const times = new Map<number, (readonly [number, number])[]>();
    const block = (call: number, at: readonly [number, number]): void => {
      const thread = apiCalls.thread[call] ?? 0;
      const own = times.get(thread) ?? [];
      times.set(thread, own);
      own.push(at);
    };
    for (const [call, at] of this.#callsOf(isBlocking)) {
      block(call, at);
    }
    const { kind, fromNs, toNs, correlation } = synchronizations;
    for (let row = 0; row < synchronizations.count; row += 1) {
      const isWait = (kind[row] ?? 0) >= SynchronizationKind.eventSynchronize;
      const call = isWait ? this.#callOf(correlation[row] ?? 0) : undefined;
      if (call !== undefined && this.#callKinds[call] !== CallKind.query) {
        block(call, [fromNs[row] ?? 0, toNs[row] ?? 0]);
      }
    }
    const allocating = this.#allocations.parts();
    return new Map(
      [...times].map(([thread, own]) => [thread, new IntervalUnion([...own, ...allocating])]),
    );
  }

  #findCompletions(): Map<number, LatestBefore> {
    const { synchronizations } = this.#work;
    const { kind, fromNs, stream, syncId, correlation, count } = synchronizations;
    const found = new Map<number, LatestBefore>();
    if (!kind.includes(SynchronizationKind.streamWaitEvent)) {
      return found;
    }
    const launched = this.#launchedByStream();
    const completed = new Map<number, number>();
    for (let row = 0; row < count; row += 1) {
      if (kind[row] === SynchronizationKind.eventRecord && !completed.has(syncId[row] ?? 0)) {
        const known = fromNs[row] ?? 0;
        const time =
          known === 0 ? launched.get(stream[row] ?? 0)?.before(correlation[row] ?? 0) : known;
        if (time !== undefined) {
          completed.set(syncId[row] ?? 0, time);
        }
      }
    }
    for (let row = 0; row < count; row += 1) {
      const isWait = kind[row] === SynchronizationKind.streamWaitEvent && syncId[row] !== 0;
      const time = isWait ? completed.get(syncId[row] ?? 0) : undefined;
      if (time !== undefined) {
        laterOf(found, stream[row] ?? 0).add(correlation[row] ?? 0, time);
      }
    }
    return found;
  }

  #launchedByStream(): Map<number, LatestBefore> {
    const { activities } = this.#work;
    const { kind, stream, correlation, fromNs, toNs } = activities;
    const launched = new Map<number, LatestBefore>();
    for (let row = 0; row < activities.count; row += 1) {
      if (correlation[row] !== 0 && kind[row] !== ActivityKind.range) {
        const end = Math.max(toNs[row] ?? 0, fromNs[row] ?? 0);
        laterOf(launched, stream[row] ?? 0).add(correlation[row] ?? 0, end);
      }
    }
    return launched;
  }
}

/** Whether the host waits in such a call. */
function isBlocking(kind: number): boolean {
  return kind === CallKind.synchronize || kind > CallKind.query;
}

function laterOf(all: Map<number, LatestBefore>, key: number): LatestBefore {
  const found = all.get(key) ?? new LatestBefore();
  all.set(key, found);
  return found;
}

/** The latest time among those that were given before a CUDA call; their ids ascend. */
class LatestBefore {
  readonly #given: (readonly [correlation: number, timeNs: number])[] = [];
  #correlations: readonly number[] | undefined;
  #latest: readonly number[] = [];

  add(correlation: number, timeNs: number): void {
    this.#given.push([correlation, timeNs]);
  }

  before(correlation: number): number | undefined {
    if (this.#correlations === undefined) {
      let latest = -Infinity;
      const sorted = this.#given.sort(([left], [right]) => left - right);
      this.#correlations = sorted.map(([id]) => id);
      this.#latest = sorted.map(([, timeNs]) => (latest = Math.max(latest, timeNs)));
    }
    return this.#latest[countBelow(this.#correlations, correlation) - 1];
  }
}
