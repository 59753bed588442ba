import assert from "node:assert/strict";
import { test } from "node:test";

import { DeviceTimeline } from "./device_timeline.ts";
import { fragmentationAfter, sizeClasses } from "./fragmentation.ts";
import { eventsOf, randomProgram } from "../../testing/random_program.ts";

function program(seed: number, initialCount = 0): DeviceTimeline {
  return new DeviceTimeline(eventsOf(randomProgram(seed, 300), initialCount), 1e6);
}

test("the parts of reserved memory add up to it after every event", () => {
  const timeline = program(3);
  for (let row = 0; row < timeline.events.count; row += 1) {
    const found = fragmentationAfter(timeline, row);
    const { requested, rounding, pendingFree, inactiveSplit, cachedWhole } = found;
    assert.equal(requested + rounding + pendingFree + inactiveSplit + cachedWhole, found.reserved);
    assert.equal(found.reserved, timeline.lines.reserved.values[row]);
    assert.equal(requested + rounding, timeline.lines.allocated.values[row]);
    assert.equal(found.free, inactiveSplit + cachedWhole);
    const free = found.pools.reduce((sum, pool) => sum + pool.free, 0);
    assert.equal(free, found.free);
  }
});

test("sizes of free blocks are counted by powers of two", () => {
  assert.deepEqual(sizeClasses([512, 1023, 1024, 4096]), [
    { fromBytes: 4096, count: 1, bytes: 4096 },
    { fromBytes: 1024, count: 1, bytes: 1024 },
    { fromBytes: 512, count: 2, bytes: 1535 },
  ]);
});
