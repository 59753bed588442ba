import { Action } from "../model/events.ts";
import { areAlike, TorchMemory, type Home, type Live } from "./torch_memory.ts";
import { Redo } from "./torch_redo.ts";
import { TorchRounding } from "./torch_rounding.ts";
import type { TorchSnapshot } from "./torch_snapshot.ts";
import { TorchTrace } from "./torch_trace.ts";
import { Undo } from "./torch_undo.ts";

/** An event that the trace does not have. */
export interface AddedEvent {
  readonly action: number;
  readonly device: number;
  readonly address: number;
  readonly size: number;
  readonly requestedSize: number;
  readonly stream: number;
  readonly pool: number;
  readonly stack: number;
}

/**
 * What a snapshot's trace and its segments tell together.
 *
 * Goes back from the segments to what existed before, then forward again. A trace has the sizes
 * that were asked for; those of the blocks follow from torch's rules for splitting.
 */
export class TorchHistory {
  readonly trace: TorchTrace;
  /** Lead to what existed before the trace. */
  readonly before: AddedEvent[] = [];
  /** Lead from the trace's end to the snapshot's segments. */
  readonly after: AddedEvent[] = [];
  /** Events that cannot have happened as the trace has them. */
  contradictions = 0;

  constructor(snapshot: TorchSnapshot) {
    const { events, segments, pools, settings } = snapshot;
    this.trace = new TorchTrace(events, new TorchRounding(settings), pools.owners());
    const firstRows = new Map<number, number>();
    for (let row = 0; row < events.count; row += 1) {
      if (events.action.at(row) >= Action.segmentAlloc) {
        this.trace.size[row] = Math.max(events.size.at(row), events.blockSize.at(row));
      }
      if (!firstRows.has(events.device.at(row))) {
        firstRows.set(events.device.at(row), row);
      }
    }
    const starts = [...firstRows.values(), events.count];
    const lastRows = new Map([...firstRows.keys()].map((device, at) => [device, starts[at + 1]]));
    const devices = new Set([...firstRows.keys(), ...segments.all.map(({ device }) => device)]);
    for (const device of [...devices].sort((left, right) => left - right)) {
      this.#workOut(device, snapshot, firstRows.get(device) ?? 0, lastRows.get(device) ?? 0);
    }
  }

  #workOut(device: number, { segments }: TorchSnapshot, first: number, last: number): void {
    const own = segments.all.filter((segment) => segment.device === device);
    const end = new TorchMemory(own, this.trace.code);
    const memory = new TorchMemory(own, this.trace.code);
    new Undo(this.trace, memory).all(first, last);
    for (const home of memory.homes) {
      this.before.push(homeEvent(device, home, true));
    }
    for (const live of memory.lives) {
      this.before.push(...existing(device, live));
    }
    new Redo(this.trace, memory).all(first, last);
    this.contradictions += memory.contradictions;
    for (const event of leadTo(device, memory, end)) {
      this.after.push(event);
    }
  }
}

/** What changes one memory into another. */
function* leadTo(device: number, from: TorchMemory, to: TorchMemory): Generator<AddedEvent> {
  const isIn = (home: Home, memory: TorchMemory): boolean => {
    const other = memory.homes.at(home.address);
    return other !== undefined && areAlike(other, home);
  };
  const kept = new Set<number>();
  for (const live of from.lives) {
    const last = to.lives.at(live.address);
    const home = from.homeOf(live.address);
    const stays = home === undefined || isIn(home, to);
    if (last?.size !== live.size || !stays || (live.isPending && !last.isPending)) {
      if (!live.isPending) {
        yield liveEvent(device, live, Action.freeRequested);
      }
      yield liveEvent(device, live, Action.freeCompleted);
      continue;
    }
    kept.add(live.address);
    if (last.isPending && !live.isPending) {
      yield liveEvent(device, live, Action.freeRequested);
    }
  }
  for (const home of from.homes) {
    if (!isIn(home, to)) {
      yield homeEvent(device, home, false);
    }
  }
  for (const home of to.homes) {
    if (!isIn(home, from)) {
      yield homeEvent(device, home, true);
    }
  }
  for (const live of to.lives) {
    if (!kept.has(live.address)) {
      yield* existing(device, live);
    }
  }
}

function existing(device: number, live: Live): AddedEvent[] {
  const alloc = liveEvent(device, live, Action.alloc);
  return live.isPending ? [alloc, liveEvent(device, live, Action.freeRequested)] : [alloc];
}

function liveEvent(device: number, live: Live, action: number): AddedEvent {
  const { address, size, stream, pool, stack } = live;
  const requestedSize = Math.min(live.requestedSize, size);
  return { action, device, address, size, requestedSize, stream, pool, stack };
}

function homeEvent(device: number, home: Home, isAdded: boolean): AddedEvent {
  const { address, size, stream, pool, isExpandable } = home;
  const added = isExpandable ? Action.segmentMap : Action.segmentAlloc;
  const removed = isExpandable ? Action.segmentUnmap : Action.segmentFree;
  const action = isAdded ? added : removed;
  const stack = isAdded ? home.stack : 0;
  return { action, device, address, size, requestedSize: 0, stream, pool, stack };
}
