import { NO_EVENT, type Blocks } from "./blocks.ts";
import { Action, type Floats, type MemoryEvents } from "./events.ts";

export const LEVEL_NAMES = ["reserved", "active", "allocated", "requested"] as const;
export type LevelName = (typeof LEVEL_NAMES)[number];

/** The totals after each event, in bytes. */
export type Levels = Readonly<Record<LevelName, Floats>>;

/**
 * Exact running sums, with the rules of torch.cuda.memory_stats: a requested free ends `allocated`,
 * a completed one ends `active` and `requested`.
 */
export function runningLevels(events: MemoryEvents, blocks: Blocks): Levels {
  const levels = {
    reserved: reservedChanges(events),
    active: new Float64Array(events.count),
    allocated: new Float64Array(events.count),
    requested: new Float64Array(events.count),
  };
  for (let block = 0; block < blocks.count; block += 1) {
    const begun = blocks.allocated[block] ?? NO_EVENT;
    if (begun === NO_EVENT) {
      continue;
    }
    const size = blocks.size[block] ?? 0;
    const requested = events.requestedSize[begun] ?? 0;
    const completed = blocks.freeCompleted[block] ?? NO_EVENT;
    const request = blocks.freeRequested[block] ?? NO_EVENT;
    change(levels.active, begun, completed, size);
    change(levels.allocated, begun, request === NO_EVENT ? completed : request, size);
    change(levels.requested, begun, completed, requested);
  }
  LEVEL_NAMES.forEach((name) => {
    accumulate(levels[name]);
  });
  return levels;
}

function change(changes: Floats, begun: number, ended: number, bytes: number): void {
  changes[begun] = (changes[begun] ?? 0) + bytes;
  if (ended !== NO_EVENT) {
    changes[ended] = (changes[ended] ?? 0) - bytes;
  }
}

function reservedChanges(events: MemoryEvents): Floats {
  const changes = new Float64Array(events.count);
  for (let row = 0; row < events.count; row += 1) {
    const action = events.action[row];
    if (action === Action.segmentAlloc || action === Action.segmentMap) {
      changes[row] = events.size[row] ?? 0;
    } else if (action === Action.segmentFree || action === Action.segmentUnmap) {
      changes[row] = -(events.size[row] ?? 0);
    }
  }
  return changes;
}

function accumulate(changes: Floats): void {
  let total = 0;
  for (let row = 0; row < changes.length; row += 1) {
    total += changes[row] ?? 0;
    changes[row] = total;
  }
}

/** The first row with the largest total, from the start of the recording on. */
export function peakRow(level: Floats, initialCount: number): number {
  let peak = Math.max(initialCount - 1, 0);
  for (let row = peak; row < level.length; row += 1) {
    if ((level[row] ?? 0) > (level[peak] ?? 0)) {
      peak = row;
    }
  }
  return peak;
}
