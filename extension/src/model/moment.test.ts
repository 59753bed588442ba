import { Action } from "../wire/codes.ts";
import assert from "node:assert/strict";
import { test } from "node:test";

import { eventsOf, randomProgram, type EventRow } from "../../testing/random_program.ts";
import { packBars } from "./bars.ts";
import { isPendingAfter } from "./blocks.ts";
import { DeviceTimeline } from "./device_timeline.ts";
import { fragmentationAfter } from "./fragmentation.ts";
import { segmentsAfter } from "./moment.ts";

interface State {
  readonly segments: ReadonlyMap<number, number>;
  readonly blocks: ReadonlyMap<number, "inUse" | "pending">;
}

function stateAfter(rows: readonly EventRow[], count: number): State {
  const segments = new Map<number, number>();
  const blocks = new Map<number, "inUse" | "pending">();
  for (const { action, address, size } of rows.slice(0, count)) {
    if (action === Action.segment_alloc) segments.set(address, address + size);
    if (action === Action.segment_free) segments.delete(address);
    if (action === Action.alloc) blocks.set(address, "inUse");
    if (action === Action.free_requested) blocks.set(address, "pending");
    if (action === Action.free_completed) blocks.delete(address);
  }
  return { segments, blocks };
}

test("the segments and blocks at any moment equal a replay up to it", () => {
  const rows = randomProgram(11, 250);
  const events = eventsOf(rows);
  const blocks = new DeviceTimeline(events).blocks;
  const segments = new DeviceTimeline(events).segments;
  rows.forEach((_, row) => {
    const expected = stateAfter(rows, row + 1);
    const found = segmentsAfter(events, segments, blocks, row);
    assert.deepEqual(
      found.map(({ from, to }) => [from, to]),
      [...expected.segments].sort(([left], [right]) => left - right),
    );
    const active = found.flatMap((segment) => segment.blocks);
    assert.deepEqual(
      active.map((block) => [
        blocks.address[block],
        isPendingAfter(blocks, block, row) ? "pending" : "inUse",
      ]),
      [...expected.blocks].sort(([left], [right]) => left - right),
    );
  });
});

test("the bars hold every byte of every segment once, in blocks and gaps", () => {
  const rows = randomProgram(5, 120);
  const events = eventsOf(rows);
  const timeline = new DeviceTimeline(events);
  const segments = timeline.segmentsAfter(rows.length - 1);
  const { pieces, widthBytes, rows: barRows } = packBars(segments, timeline.blocks);
  const bytes = (isFree: boolean): number =>
    pieces
      .filter((piece) => (piece.block === undefined) === isFree)
      .reduce((sum, piece) => sum + piece.to - piece.from, 0);
  const reserved = segments.reduce((sum, segment) => sum + segment.to - segment.from, 0);

  assert.equal(bytes(true) + bytes(false), reserved);
  assert.equal(bytes(true), fragmentationAfter(timeline, rows.length - 1).free);
  assert.ok(pieces.every((piece) => piece.to <= widthBytes && piece.row < barRows));
});

test("neighbouring mapped ranges are one segment, allocated ones are not", () => {
  const events = eventsOf([
    { timeNs: 0, action: Action.segment_map, address: 1000, size: 100 },
    { timeNs: 1, action: Action.segment_map, address: 1100, size: 100, stream: 2 },
    { timeNs: 2, action: Action.segment_alloc, address: 5000, size: 100 },
    { timeNs: 3, action: Action.segment_alloc, address: 5100, size: 100 },
    { timeNs: 4, action: Action.segment_unmap, address: 1050, size: 50 },
  ]);
  const segments = new DeviceTimeline(events).segments;
  const ranges = (row: number): number[][] =>
    segmentsAfter(events, segments, new DeviceTimeline(events).blocks, row).map(({ from, to }) => [
      from,
      to,
    ]);

  assert.deepEqual(ranges(1), [[1000, 1200]]);
  assert.deepEqual(ranges(4), [
    [1000, 1050],
    [1100, 1200],
    [5000, 5100],
    [5100, 5200],
  ]);
});

test("no two blocks cover the same bytes at the same time", () => {
  const timeline = new DeviceTimeline(eventsOf(randomProgram(3, 300)));
  const { blocks, endNs } = timeline;
  const used = new Set<string>();
  const use = (block: number, from = 0, to = 0): void => {
    for (let time = from; time < Math.min(to, endNs); time += 100) {
      const place = `${time} ${blocks.address[block]}`;
      assert.ok(!used.has(place), place);
      used.add(place);
    }
  };
  for (let block = 0; block < blocks.count; block += 1) {
    use(block, blocks.fromNs[block], blocks.inUseUntilNs[block]);
  }
  blocks.pending.block.forEach((block, place) => {
    use(block, blocks.pending.fromNs[place], blocks.pending.toNs[place]);
  });
  assert.ok(blocks.pending.count > 10);
  assert.equal(timeline.layout.totalBytes, 4 * 8000);
});

test("blocks outside known segments have a place of their own", () => {
  const events = eventsOf([
    { timeNs: 0, action: Action.alloc, address: 9000, size: 512 },
    { timeNs: 1, action: Action.alloc, address: 512, size: 512 },
  ]);
  const timeline = new DeviceTimeline(events, 10);

  assert.equal(timeline.layout.totalBytes, 1024);
  assert.equal(timeline.layout.offsetOf(9000), 512);
});
