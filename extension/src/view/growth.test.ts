import { Action } from "../wire/codes.ts";
import assert from "node:assert/strict";
import { test } from "node:test";

import { seeded } from "../../testing/seeded.ts";
import { createRaster, paintRects } from "../render/raster.ts";
import { MapPlaces } from "./map_layers.ts";
import { BlockGroups } from "../model/block_groups.ts";
import { categorize } from "../model/categories.ts";
import { columnExtremes, columnRows } from "../model/decimation.ts";
import { DeviceTimeline } from "../model/device_timeline.ts";
import { eventsOf, randomProgram } from "../../testing/random_program.ts";

function columnsOf(timeline: DeviceTimeline): unknown {
  const { blocks, segments, lines, layout, regions } = timeline;
  const offsets = Array.from(regions, (region, block) => {
    return (blocks.address[block] ?? 0) + (layout.shifts[region] ?? 0);
  });
  const pending = [...blocks.pending.block.keys()].flatMap((place) => {
    const times = [blocks.pending.fromNs[place] ?? 0, blocks.pending.toNs[place] ?? 0];
    return times[0] === Infinity ? [] : [[blocks.pending.block[place], ...times]];
  });
  return {
    blocks: [blocks.address, blocks.size, blocks.allocated, blocks.freeCompleted].map(String),
    times: [blocks.fromNs, blocks.inUseUntilNs].map(String),
    segments: [segments.from, segments.to, segments.begun, segments.ended].map(String),
    levels: Object.values(lines).map(({ values }) => String(values)),
    pending,
    offsets,
    peak: timeline.peak,
    totalBytes: layout.totalBytes,
  };
}

test("a timeline that grew batch by batch is the one made at once", () => {
  for (const seed of [31, 32, 33, 34]) {
    const random = seeded(seed);
    const rows = randomProgram(seed, 600);
    const grown = new DeviceTimeline();
    for (let count = 0; count < rows.length;) {
      count = Math.min(count + Math.ceil(random() ** 3 * 90), rows.length);
      grown.extend(eventsOf(rows.slice(0, count)), 0);
    }

    assert.deepEqual(columnsOf(grown), columnsOf(new DeviceTimeline(eventsOf(rows))));
  }
});

test("a peak of one event among ten million is seen when all of them are shown", () => {
  const count = 10_000_000;
  const at = 7_654_321;
  const timeNs = new Float64Array(count).map((_, row) => row);
  const action = new Uint8Array(count).fill(Action.oom + 1);
  const bytes = new Float64Array(count);
  action.set([Action.alloc, Action.free_completed], at);
  bytes.fill(512, at, at + 2);
  const ids = new Uint32Array(count);
  const columns = { timeNs, action, address: bytes, size: bytes, requestedSize: bytes };
  const of = { stream: ids, pool: ids, stack: ids, framework: new Uint8Array(count) };
  const events = { count, initialCount: 0, isShared: false, ...columns, ...of };
  const timeline = new DeviceTimeline(events);
  const groups = new BlockGroups(timeline, "stack");
  groups.extend();
  const palette = { fill: [0xff000001], edge: [0xff000001] };
  const places = new MapPlaces();
  const { blocks } = places.layers(timeline, categorize(groups, String, "rest"), palette, 360);
  const raster = createRaster(1400, 360);
  paintRects(raster, [blocks], { left: 0, right: count });
  const column = Math.round((at * 1400) / count);
  const rows = columnRows(timeNs, 0, count, 1400);
  const { largest } = columnExtremes(timeline.lines.allocated, rows);

  assert.equal(timeline.peak, at);
  assert.equal(Math.max(...largest), 512);
  assert.deepEqual(
    [...raster.pixels.keys()].filter((pixel) => raster.pixels[pixel] !== 0),
    Array.from({ length: 360 }, (_, row) => row * 1400 + column),
  );
});
