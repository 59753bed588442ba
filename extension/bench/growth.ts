// Prints the time to add a batch, by the number of existing rows: node bench/growth.ts
import { Action } from "../src/wire/codes.ts";
import { seeded } from "../testing/seeded.ts";
import { BlockGroups } from "../src/model/block_groups.ts";
import { categorize } from "../src/model/categories.ts";
import { DeviceTimeline } from "../src/model/device_timeline.ts";
import { SpanStack } from "../src/model/span_stack.ts";
import { MapPlaces } from "../src/view/map_layers.ts";

const MOST = 5_000_000;
const BATCH = 2500;
const STEP_NS = 10_000;
const SLOTS = 4096;
const SLOT_BYTES = 1 << 17;
const HEIGHT_PX = 360;
const BATCHES = 40;

const random = seeded(2);
const taken = new Uint8Array(SLOTS);
const columns = {
  timeNs: Float64Array.from({ length: MOST }, (_, row) => row * STEP_NS),
  action: new Uint8Array(MOST),
  address: new Float64Array(MOST),
  size: new Float64Array(MOST).fill(SLOT_BYTES / 2),
  requestedSize: new Float64Array(MOST).fill(SLOT_BYTES / 2),
  stream: new Uint32Array(MOST),
  pool: new Uint32Array(MOST),
  stack: new Uint32Array(MOST),
  framework: new Uint8Array(MOST),
};
for (let row = 0; row < MOST; row += 1) {
  const slot = Math.floor(random() * SLOTS);
  columns.address[row] = 0x7f00_0000_0000 + slot * SLOT_BYTES;
  columns.action[row] = taken[slot] === 0 ? Action.alloc : Action.free_completed;
  columns.stack[row] = slot % 11;
  taken[slot] = 1 - (taken[slot] ?? 0);
}

const timeline = new DeviceTimeline();
const groups = new BlockGroups(timeline, "stack");
const lane = new SpanStack();
const places = new MapPlaces();
const palette = { fill: [0], edge: [0] };

function grow(from: number, to: number): void {
  const events = Object.fromEntries(
    Object.entries(columns).map(([name, values]) => [name, values.subarray(0, to)]),
  ) as unknown as typeof columns;
  timeline.extend({ ...events, count: to, initialCount: 0, isShared: false }, to * STEP_NS);
  const fromNs = columns.timeNs.subarray(from, to);
  const toNs = fromNs.map((time) => time + STEP_NS / 2);
  const kind = new Uint8Array(fromNs.length);
  lane.append({ fromNs, toNs, kind, source: Int32Array.from(fromNs.keys()) });
  groups.extend();
  places.layers(timeline, categorize(groups, String, "rest"), palette, HEIGHT_PX);
}

let count = 0;
console.log(`batches of ${BATCH} events and ${BATCH} activities; ms`);
for (const until of [100_000, 1_000_000, MOST]) {
  grow(count, until - BATCHES * BATCH);
  count = until - BATCHES * BATCH;
  const times = Array.from({ length: BATCHES }, () => {
    const begin = performance.now();
    grow(count, count + BATCH);
    count += BATCH;
    return performance.now() - begin;
  }).sort((left, right) => left - right);
  const [median = 0, worst = 0] = [times[BATCHES >> 1], times.at(-1)];
  console.log(`${until} events: median ${median.toFixed(2)}, worst ${worst.toFixed(2)}`);
}
