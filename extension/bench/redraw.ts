// Prints the time to rasterize the charts of a large recording, by zoom: node bench/redraw.ts
import { Action } from "../src/wire/codes.ts";
import { seeded } from "../testing/seeded.ts";
import { allocationStack } from "../src/model/allocation_stack.ts";
import { BlockGroups } from "../src/model/block_groups.ts";
import { categorize } from "../src/model/categories.ts";
import { CategoryLevels } from "../src/model/category_levels.ts";
import { columnExtremes, columnLargest, columnRows } from "../src/model/decimation.ts";
import { DeviceTimeline } from "../src/model/device_timeline.ts";
import { eventsOf, type EventRow } from "../testing/random_program.ts";
import { SpanStack } from "../src/model/span_stack.ts";
import { paintLane } from "../src/render/lane_raster.ts";
import { clearedRaster, createRaster, paintRects } from "../src/render/raster.ts";
import { paintStack } from "../src/render/stack_raster.ts";
import { MapPlaces } from "../src/view/map_layers.ts";

const BLOCKS = 1_000_000;
const ACTIVITIES = 1_000_000;
const STREAMS = 8;
const WIDTH_PX = 1400;
const LEVELS_PX = 228;
const MAP_PX = 440;
const LANE_PX = 32;
const LENGTH_NS = 60e9;
const REPEATS = 15;
const ZOOMS = [1, 3, 10, 30, 100, 1e3, 1e4, 1e6];

function randomEvents(): EventRow[] {
  const random = seeded(1);
  const rows: EventRow[] = [];
  const slots = 4096;
  for (let segment = 0; segment < 16; segment += 1) {
    rows.push({
      timeNs: 0,
      action: Action.segment_alloc,
      address: (segment + 1) << 26,
      size: 1 << 25,
    });
  }
  const taken = new Uint8Array(slots);
  for (let event = 0; event < 2 * BLOCKS; event += 1) {
    const slot = Math.floor(random() * slots);
    const address = ((slot >> 8) + 1) * (1 << 26) + (slot & 255) * (1 << 17);
    const action = taken[slot] === 0 ? Action.alloc : Action.free_completed;
    taken[slot] = 1 - (taken[slot] ?? 0);
    const size = 512 * (1 + (slot % 255));
    const timeNs = (event / (2 * BLOCKS)) * LENGTH_NS;
    rows.push({ timeNs, action, address, size, stack: slot % 11 });
  }
  return rows;
}

function randomLane(seed: number): SpanStack {
  const random = seeded(seed);
  const count = ACTIVITIES / STREAMS;
  const fromNs = Float64Array.from({ length: count }, () =>
    Math.floor(random() * LENGTH_NS),
  ).sort();
  const toNs = fromNs.map((from, at) => from + random() * ((fromNs[at + 1] ?? LENGTH_NS) - from));
  const kind = Uint8Array.from(fromNs, () => Math.floor(random() * 7));
  const stack = new SpanStack();
  stack.append({ fromNs, toNs, kind, source: fromNs.map((_, at) => at) });
  return stack;
}

function median(values: readonly number[]): number {
  return values.toSorted((left, right) => left - right)[values.length >> 1] ?? 0;
}

const timeline = new DeviceTimeline(eventsOf(randomEvents()), LENGTH_NS);
const groups = new BlockGroups(timeline, "stack");
groups.extend();
const categories = categorize(groups, String, "rest");
const beganLevels = performance.now();
const levels = new CategoryLevels(categories);
const levelsMs = performance.now() - beganLevels;
const most = timeline.lines.reserved.largestIn(0, timeline.events.count);
const lanes = Array.from({ length: STREAMS }, (_, stream) => randomLane(stream + 7));
const colours = Array.from({ length: 13 }, (_, place) => 0xff000000 + place * 0x101010);
const palette = { fill: colours, edge: colours, pattern: colours.map((_, place) => place % 7) };
const places = new MapPlaces();

let levelsRaster = createRaster(WIDTH_PX, LEVELS_PX);

function redrawLevels(from: number, to: number): void {
  const ends = columnRows(timeline.events.timeNs, from, to, WIDTH_PX);
  columnExtremes(timeline.lines.reserved, ends);
  columnLargest(timeline.lines.active, ends);
  const stack = allocationStack(timeline, categories, levels, { from, to }, ends);
  levelsRaster = clearedRaster(levelsRaster, WIDTH_PX, LEVELS_PX);
  paintStack(levelsRaster, stack, LEVELS_PX / most, colours, { ...palette, light: colours });
}

let mapRaster = createRaster(WIDTH_PX, MAP_PX);
let laneRaster = createRaster(WIDTH_PX, STREAMS * LANE_PX);

function redrawMap(from: number, to: number): void {
  mapRaster = clearedRaster(mapRaster, WIDTH_PX, MAP_PX);
  const { segments, blocks, pending } = places.layers(timeline, categories, palette, MAP_PX);
  paintRects(mapRaster, [segments, blocks, pending], { left: from, right: to });
}

function redrawLanes(from: number, to: number): void {
  laneRaster = clearedRaster(laneRaster, WIDTH_PX, STREAMS * LANE_PX);
  lanes.forEach((stack, lane) => {
    for (const row of stack.rows) {
      const { share, span } = row.columns(from, to, WIDTH_PX);
      const { kind } = row;
      const placeOf = (shown: number): number => kind[shown] ?? 0;
      const fromY = lane * LANE_PX;
      const toY = fromY + LANE_PX;
      paintLane(laneRaster, { fromY, toY, share, span, placeOf, firstId: 0 }, palette);
    }
  });
}

const parts = { levels: redrawLevels, map: redrawMap, lanes: redrawLanes };
const all: number[] = [];
console.log(`${timeline.blocks.count} blocks, ${ACTIVITIES} activities, ${WIDTH_PX} x 700; ms`);
console.log(`sums of ${timeline.events.count} events by category: ${levelsMs.toFixed(0)} ms`);
console.log(
  "zoom".padStart(9),
  ...[...Object.keys(parts), "all", "worst"].map((name) => name.padStart(8)),
);
for (const zoom of ZOOMS) {
  const width = LENGTH_NS / zoom;
  const from = (LENGTH_NS - width) * 0.4;
  const runs = Array.from({ length: REPEATS }, () =>
    Object.values(parts).map((redraw) => {
      const begin = performance.now();
      redraw(from, from + width);
      return performance.now() - begin;
    }),
  );
  const sums = runs.map((run) => run.reduce((sum, time) => sum + time, 0));
  all.push(...sums.slice(1));
  const columns = [0, 1, 2].map((part) => Math.min(...runs.map((run) => run[part] ?? 0)));
  const shown = [...columns, median(sums), Math.max(...sums.slice(1))];
  console.log(String(zoom).padStart(9), ...shown.map((time) => time.toFixed(1).padStart(8)));
}
console.log(`median ${median(all).toFixed(1)} ms, worst ${Math.max(...all).toFixed(1)} ms`);
