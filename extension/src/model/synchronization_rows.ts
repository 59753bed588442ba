import { CallKind, callKinds } from "./call_kinds.ts";
import { byFirstDifference, groupsOf, medianOf, Pairs, TextNumbers, typicalRow } from "./groups.ts";
import type { Picked } from "./picked.ts";
import { NO_CALL, type Place, type Places } from "./places.ts";
import { SpanKind } from "./span_kinds.ts";
import { SynchronizationKind } from "./synchronizations.ts";
import type { Work } from "./work.ts";

const KINDS = [
  "event_synchronize",
  "stream_synchronize",
  "context_synchronize",
  "memcpy",
  "pageable_memcpy",
] as const;
const MEMCPY = 3;
const PAGEABLE_MEMCPY = 4;

/** What `Recording.synchronizations("line")` has in a row, and which wait took longest. */
export interface SynchronizationRow {
  readonly kind: string;
  readonly name: string;
  readonly place: Place;
  readonly count: number;
  readonly totalNs: number;
  readonly medianNs: number;
  readonly maxNs: number;
  readonly longest: Picked;
}

/** A time in which the host was blocked: its kind, its call, its length and its span. */
interface Blocked {
  readonly kind: number;
  readonly call: number;
  readonly lengthNs: number;
  readonly picked: Picked;
}

/**
 * What blocked the host, by line, most time first.
 *
 * By the rules of gpuviz/analysis/synchronizations.py.
 */
export function synchronizationRows(work: Work, places: Places): SynchronizationRow[] {
  const blocked = blockedTimes(work, places);
  const names = new TextNumbers((id) => work.strings.get(id));
  const [lines, kinds] = [new Pairs(), new Pairs()];
  const nameOf = ({ call }: Blocked): number =>
    call === NO_CALL ? 0 : (work.apiCalls.name[call] ?? 0);
  const at = (index: number): Blocked => blocked[index] ?? NOTHING;
  const stackOf = (index: number): number => places.stackOf(at(index).call);
  return groupsOf(blocked.keys(), (index) => {
    const line = lines.of(places.lineOf(stackOf(index)), at(index).kind);
    return kinds.of(line, names.of(nameOf(at(index))));
  })
    .map((group) => {
      const typical = typicalRow(group, stackOf);
      const lengths = group.map((index) => at(index).lengthNs);
      const maxNs = lengths.reduce((high, length) => Math.max(high, length), 0);
      return {
        kind: KINDS[at(typical).kind] ?? "",
        name: work.strings.get(nameOf(at(typical))),
        place: places.of(stackOf(typical)),
        count: group.length,
        totalNs: lengths.reduce((sum, length) => sum + length, 0),
        medianNs: medianOf(lengths) ?? 0,
        maxNs,
        longest: at(group[lengths.indexOf(maxNs)] ?? typical).picked,
      };
    })
    .sort(
      byFirstDifference<SynchronizationRow>(
        (left, right) => right.totalNs - left.totalNs,
        (left, right) => right.count - left.count,
      ),
    );
}

const NOTHING: Blocked = {
  kind: 0,
  call: NO_CALL,
  lengthNs: 0,
  picked: { kind: "span", spanKind: SpanKind.wait, row: 0 },
};

function blockedTimes(work: Work, places: Places): Blocked[] {
  const { synchronizations, apiCalls } = work;
  const ofCalls = callKinds(work);
  const blocked: Blocked[] = [];
  const known = new Set<number>();
  for (let row = 0; row < synchronizations.count; row += 1) {
    const kind = (synchronizations.kind[row] ?? 0) - SynchronizationKind.eventSynchronize;
    const call = places.callOf(synchronizations.correlation[row] ?? 0);
    // Calls that wait are always recorded, queries only when all calls are.
    const isQuery = ofCalls.length > 0 && (call === NO_CALL || ofCalls[call] === CallKind.query);
    if (kind >= 0 && kind < MEMCPY && !isQuery) {
      known.add(call);
      const lengthNs = lengthOf(synchronizations, row);
      blocked.push({
        kind,
        call,
        lengthNs,
        picked: { kind: "span", spanKind: SpanKind.wait, row },
      });
    }
  }
  for (const call of blockingCalls(work, places, ofCalls)) {
    if (!known.has(call)) {
      const kind = kindOfCall(work, call, ofCalls[call] ?? 0);
      const lengthNs = lengthOf(apiCalls, call);
      blocked.push({
        kind,
        call,
        lengthNs,
        picked: { kind: "span", spanKind: SpanKind.call, row: call },
      });
    }
  }
  return blocked;
}

interface Spans {
  readonly fromNs: Float64Array<ArrayBuffer>;
  readonly toNs: Float64Array<ArrayBuffer>;
}

function lengthOf({ fromNs, toNs }: Spans, row: number): number {
  return Math.max((toNs[row] ?? 0) - (fromNs[row] ?? 0), 0);
}

/** The rows of calls that block; of several with one correlation id, the first. */
function* blockingCalls(
  { apiCalls }: Work,
  places: Places,
  kinds: Uint8Array<ArrayBuffer>,
): Generator<number> {
  for (let row = 0; row < kinds.length; row += 1) {
    const kind = kinds[row];
    const correlation = apiCalls.correlation[row] ?? 0;
    const blocks =
      kind === CallKind.synchronize || kind === CallKind.memcpy || kind === CallKind.pageableMemcpy;
    if (blocks && (correlation === 0 || places.callOf(correlation) === row)) {
      yield row;
    }
  }
}

function kindOfCall({ apiCalls, strings }: Work, call: number, kind: number): number {
  if (kind === CallKind.memcpy) {
    return MEMCPY;
  }
  if (kind === CallKind.pageableMemcpy) {
    return PAGEABLE_MEMCPY;
  }
  const name = strings.get(apiCalls.name[call] ?? 0);
  const waitsFor = SynchronizationKind.eventSynchronize;
  if (name.includes("Stream")) {
    return SynchronizationKind.streamSynchronize - waitsFor;
  }
  return name.includes("Event") ? 0 : SynchronizationKind.contextSynchronize - waitsFor;
}
